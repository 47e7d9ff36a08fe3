// What a SummaryWriter takes for TensorBoard's HParams, Graphs, Custom Scalars, Mesh and Projector tabs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "tbwriter/image.h"

namespace sweep::tbwriter {

/// TensorBoard has text, bool and number; integers are stored as doubles. A name must
/// have the same type in all runs, or be nullptr: no value.
using HParamValue = std::variant<bool, std::int64_t, double, std::string, std::nullptr_t>;

/// Name and value, in the order to be written. Numbers that are not finite and nullptr are not written, so
/// that the cell is empty: TensorBoard cannot sort or filter a column that has a null.
using HParams = std::vector<std::pair<std::string, HParamValue>>;

/// How a run ended. TensorBoard shows a run without an end as unknown, which fits a run that is still
/// training or was killed.
enum class SessionStatus { kUnknown = 0, kSuccess = 1, kFailure = 2, kRunning = 3 };

/// One hyperparameter column of the HParams table.
struct HParamInfo {
  enum class Type { kString = 1, kBool = 2, kNumber = 3 };
  std::string name = {};
  Type type = Type::kNumber;
  std::string display_name = {};
  std::string description = {};
  std::vector<HParamValue> discrete = {};                  // the choices of the filter
  std::optional<std::pair<double, double>> interval = {};  // or the range of the filter; numbers only
  bool differs = true;                                     // whether the values of the runs differ
};

/// One metric column: the last value of scalar `tag` in the run `session/group`.
struct MetricInfo {
  std::string tag = {};
  std::string group = {};  // "" is the session's own run
  std::string display_name = {};
  std::string description = {};
};

/// The whole table. TensorBoard uses only one of these in a log directory, the first that it finds: write it
/// once, to the top directory, or not at all, since TensorBoard derives the same table from the sessions.
struct HParamsExperiment {
  std::string name = {};
  std::string description = {};
  std::string user = {};
  std::vector<HParamInfo> hparams = {};
  std::vector<MetricInfo> metrics = {};
};

/// The value of an attribute in a node's card. TensorBoard drops texts and lists longer than 1,024 bytes.
using GraphAttribute =
    std::variant<bool, std::int64_t, double, std::string, std::vector<std::int64_t>, std::vector<double>>;

/// The shape of an array, outermost extent first; -1 is unknown (the batch dimension), shown as "?".
using GraphShape = std::vector<std::int64_t>;

/// An operation, a parameter or an input.
struct GraphNode {
  /// Unique. "conv1/weight" is in the scope "conv1", which TensorBoard shows as
  /// one node that can be expanded.
  std::string name = {};
  /// The operation: "Conv2d". Nodes of one operation have the same look.
  std::string op = {};
  /// Names of other nodes; "name:1" is the second output of one, "^name" a control dependency.
  std::vector<std::string> inputs = {};
  /// "/device:CPU:0"; TensorBoard can colour nodes by device.
  std::string device = {};
  /// Shown sorted by name.
  std::vector<std::pair<std::string, GraphAttribute>> attributes = {};
  /// One per output; they label the outgoing edges.
  std::vector<GraphShape> output_shapes = {};
};

/// A whole graph, nodes in any order.
struct Graph {
  std::vector<GraphNode> nodes = {};
};

/// Time and memory of one node in one measured step.
struct NodeProfile {
  std::string node = {};          // the GraphNode's name
  std::string device = {};        // "/device:CPU:0"; must end in device:TYPE:N
  std::int64_t start_micros = 0;  // since 1970
  std::int64_t duration_micros = 0;
  std::int64_t memory_bytes = 0;               // of its outputs
  std::vector<GraphShape> output_shapes = {};  // without unknown extents
};

/// One chart of several tags.
struct Chart {
  std::string title = {};
  /// Regular expressions, each matched at the start of a tag; end one with "$" to match one tag exactly.
  std::vector<std::string> tags = {};
  /// Whether each line has a band around it. Then `tags` are those of the value, the lower and the upper end,
  /// three per line, which must have the same steps.
  bool has_bands = false;
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

/// One or more meshes of equal sizes. Owns nothing: the arrays must be valid until add_mesh() returns.
struct Mesh {
  std::span<const float> vertices = {};       // [batch, points, 3]
  std::span<const std::uint8_t> colors = {};  // [batch, points, 3]: red, green, blue; or empty
  std::span<const std::int32_t> faces = {};  // [batch, triangles, 3]: indices of points; empty: a point cloud
  std::int64_t batch = 1;                    // >= 1
  std::string_view config = {};              // JSON for the viewer: camera, lights, material of three.js
};

/// Labels of the points.
struct EmbeddingLabels {
  std::vector<std::string> header = {};             // names of the columns; required for two or more columns
  std::vector<std::vector<std::string>> rows = {};  // [points, columns]; empty: no labels
};

/// A small picture of each point, [points, channels, height, width] with 8 bits
/// per value; empty: no pictures.
struct EmbeddingPictures {
  std::span<const std::uint8_t> pixels = {};
  BatchSize size = {};
};

}  // namespace sweep::tbwriter
