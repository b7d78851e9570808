// The one thing ferry wants from EXIF: the orientation.
#pragma once

#include <cstddef>
#include <span>

namespace ferry::vision {

// `exif` is a TIFF header and what follows ("II*\0..." or "MM\0*..."), without JPEG's "Exif\0\0".
// Looks at the first directory only, as OpenCV does. Gives 1..8; 1 when there is no such tag, its
// value is another, or the data is broken.
int exif_orientation(std::span<const std::byte> exif);

}  // namespace ferry::vision
