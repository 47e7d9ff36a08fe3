// Which tags share a chart in TensorBoard's Custom Scalars tab.
#pragma once

#include <string>
#include <variant>
#include <vector>

namespace sweep::tbwriter {

/// Several tags in one chart. Each is a regular expression, matched from the start of a tag: end exact ones
/// with "$".
struct MultilineChart {
  std::vector<std::string> tags = {};
};

/// A line inside a band; the three tags must have the same steps.
struct MarginSeries {
  std::string value = {};
  std::string lower = {};
  std::string upper = {};
};

struct MarginChart {
  std::vector<MarginSeries> series = {};
};

struct Chart {
  std::string title = {};
  std::variant<MultilineChart, MarginChart> content = {};
};

struct ChartCategory {
  std::string title = {};
  std::vector<Chart> charts = {};
  bool closed = false;  // folded away at first
};

/// Layouts of several runs are merged by TensorBoard, not always well: write one, into the top directory.
using CustomScalarsLayout = std::vector<ChartCategory>;

}  // namespace sweep::tbwriter
