// Text to a mask of coverage, by Pango and Cairo. Internal to vision.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/result.h"

namespace ferry::vision {

// Coverage 0..255 of one line of text, rows without padding. The text's own margins (ascent,
// descent) are inside.
struct LabelMask {
  int64_t width = 0, height = 0;
  std::vector<uint8_t> coverage;
  int missing = 0;  // characters that no installed font has; they show as boxes with their number
};

// Lays out labels and keeps the last few hundred. One thread at a time.
class LabelMaker {
 public:
  // kUnsupported when fontconfig knows no font at all.
  static Result<LabelMaker> create(const std::string& font);
  ~LabelMaker();
  LabelMaker(LabelMaker&&) noexcept;
  LabelMaker& operator=(LabelMaker&&) noexcept;

  // `pixels` is the font's size (its em). Bytes that are not UTF-8 show as replacement characters,
  // line breaks as symbols. The mask stays valid until the next call.
  Result<const LabelMask*> mask(const std::string& text, int64_t pixels);

 private:
  struct Pango;
  explicit LabelMaker(std::unique_ptr<Pango> pango);
  std::unique_ptr<Pango> pango_;
  std::unordered_map<std::string, LabelMask> kept_;  // by size and text
};

}  // namespace ferry::vision
