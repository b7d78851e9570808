// One panel of a chart: where its parts stand, and their drawing. Internal to vision.
#pragma once

#include "vision/chart.h"
#include "vision/chart_axis.h"
#include "vision/chart_canvas.h"

namespace ferry::vision {

// A panel that was checked, with its axes' ends known.
struct PanelScales {
  Scale x, y;
};

// Into `place`, all of it: title, axes, marks, legends.
void draw_panel(ChartCanvas& canvas, const Panel& panel, const PanelScales& scales,
                const Rect& place, double text_size);

// What a heat map's colours reach from and to. low < high.
Scale heat_scale(const HeatMap& map);

}  // namespace ferry::vision
