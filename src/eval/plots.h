// The plots of an evaluation as Ultralytics' users know them (YOLOv5 v7.0, utils/metrics.py:
// plot_pr_curve, plot_mc_curve, ConfusionMatrix.plot).
#pragma once

#include <span>
#include <string>

#include "base/result.h"
#include "eval/confusion.h"
#include "eval/ultralytics.h"
#include "vision/picture.h"

namespace ferry::eval {

// Classes are named by their id where `names` is too short. Up to 20 classes with objects get a
// coloured line and a place in the legend each, more are thin and gray; the mean is thick and blue.
// The title of each names the plot, the legend the mean's best: "all classes 0.563 mAP@0.5",
// "all classes 0.52 at 0.345". A class of which nothing was detected is zero in the mean, as it is
// in the mAP; upstream's mean PR curve leaves it out.
Result<vision::Picture> draw_pr_curve(const UltralyticsReport& report,
                                      std::span<const std::string> names);

enum class ConfidenceCurve : unsigned char { kPrecision, kRecall, kF1 };
Result<vision::Picture> draw_confidence_curve(const UltralyticsReport& report,
                                              ConfidenceCurve which,
                                              std::span<const std::string> names);

// Columns are true classes and sum to 1; rows are predicted ones; background last. Numbers are
// written for fewer than 30 classes, names for fewer than 99; what is below 0.005 stays white.
Result<vision::Picture> draw_confusion(const ConfusionMatrix& matrix,
                                       std::span<const std::string> names);

// PR_curve.png, P_curve.png, R_curve.png, F1_curve.png and confusion_matrix.png in `folder`, which
// exists. The curves are left out when nothing was found (no classes in the report), as upstream
// does.
Status write_plots(const std::string& folder, const UltralyticsReport& report,
                   const ConfusionMatrix& matrix, std::span<const std::string> names);

}  // namespace ferry::eval
