// Turns stored pixels upright: the eight orientations that EXIF, TIFF and video display matrices
// can name.
#pragma once

#include "vision/picture.h"

namespace ferry::vision {

// EXIF orientation (tag 0x0112) says where the first stored row and column are seen:
//   1 top, left        2 top, right (mirrored)      3 bottom, right (180)    4 bottom, left
//   (flipped) 5 left, top (transposed)   6 right, top (needs 90 clockwise)   7 right, bottom   8
//   left, bottom (needs 270)
// Values outside 1..8 mean 1. For 5 to 8 the sides swap and a new picture is made (kNoMemory when
// that fails).
Result<Picture> orient(Picture picture, int orientation);

}  // namespace ferry::vision
