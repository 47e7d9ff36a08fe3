// The layout of TensorBoard's Custom Scalars tab: which tags share a chart.
#pragma once

#include <string>
#include <variant>
#include <vector>

namespace sweep::tbwriter {

/// Several tags in one chart. Each is a regular expression that is matched at the start of a tag; end it with
/// "$" to match one tag exactly.
struct MultilineChart {
  std::vector<std::string> tags = {};
};

/// A line with a band around it: three tags, which must have the same steps.
struct MarginSeries {
  std::string value = {};
  std::string lower = {};
  std::string upper = {};
};

/// Lines with bands in one chart.
struct MarginChart {
  std::vector<MarginSeries> series = {};
};

/// One chart.
struct Chart {
  std::string title = {};
  std::variant<MultilineChart, MarginChart> content = {};
};

/// A titled group of charts.
struct ChartCategory {
  std::string title = {};
  std::vector<Chart> charts = {};
  bool closed = false;  // collapsed when the page is opened
};

/// All categories. TensorBoard merges the layouts of several runs, not always well: write a single one, to
/// the top directory.
using CustomScalarsLayout = std::vector<ChartCategory>;

}  // namespace sweep::tbwriter
