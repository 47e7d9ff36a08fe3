// A network's graph for TensorBoard's Graphs tab.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace sweep::tbwriter {

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

}  // namespace sweep::tbwriter
