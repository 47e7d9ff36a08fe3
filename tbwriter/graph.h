// A network's graph in plain C++, for TensorBoard's Graphs tab.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace sweep::tbwriter {

/// What is shown in a node's card. Text and lists longer than 1,024 bytes are cut away by TensorBoard.
using GraphAttribute =
    std::variant<bool, std::int64_t, double, std::string, std::vector<std::int64_t>, std::vector<double>>;

/// An array's extents, outermost first; -1 is an unknown one, shown as "?" (the batch dimension).
using GraphShape = std::vector<std::int64_t>;

struct GraphNode {
  /// Unique; "conv1/weight" lies in the scope "conv1", which TensorBoard can expand.
  std::string name = {};
  /// What it computes: "Conv2d". Operations of one kind look alike.
  std::string op = {};
  /// Names of other nodes; "name:1" is the second output, "^name" only an order.
  std::vector<std::string> inputs = {};
  /// "/device:CPU:0", so that TensorBoard can colour by device.
  std::string device = {};
  /// Shown in the order of their names.
  std::vector<std::pair<std::string, GraphAttribute>> attributes = {};
  /// One per output; they label the edges that leave this node.
  std::vector<GraphShape> output_shapes = {};
};

struct Graph {
  std::vector<GraphNode> nodes = {};
};

/// Time and memory of one node in one measured step.
struct NodeProfile {
  std::string node = {};          // the GraphNode's name
  std::string device = {};        // "/device:CPU:0"; must end in device:TYPE:N
  std::int64_t start_micros = 0;  // since 1970
  std::int64_t duration_micros = 0;
  std::int64_t memory_bytes = 0;               // what its outputs take
  std::vector<GraphShape> output_shapes = {};  // known extents only, no -1
};

}  // namespace sweep::tbwriter
