// Which YOLOv5 release a module tree looks like.
#pragma once

#include <string>

#include "import/torch/module.h"

namespace ferry::import::torch {

// "YOLOv5 v4 or v5"; empty when nothing in it tells. `layers` is the model's list of layers.
std::string guess_release(const Module& model, const Module& layers);

}  // namespace ferry::import::torch
