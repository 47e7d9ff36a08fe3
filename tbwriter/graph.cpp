#include "tbwriter/graph.h"

#include <map>
#include <span>
#include <string_view>
#include <unordered_set>

#include "core/base/utf8.h"
#include "tbwriter/error.h"
#include "tbwriter/proto_encoding.h"
#include "tbwriter/wire.h"

namespace sweep::tbwriter {
namespace {

constexpr std::int64_t kProducer = 22;  // GraphDef version, as PyTorch's writer sets it

std::string shape_message(const GraphShape& shape) {
  std::string message;
  for (const std::int64_t extent : shape) {
    std::string dim;
    wire::integer(dim, 1, extent);
    wire::always_bytes(message, 2, dim);
  }
  return message;
}

// "[?, 6, 24, 24]", like TensorBoard's labels of edges.
std::string shape_text(const GraphShape& shape) {
  std::string text = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) {
    text += (i > 0 ? ", " : "") + (shape[i] < 0 ? std::string("?") : std::to_string(shape[i]));
  }
  return text + "]";
}

std::string attribute_message(const GraphAttribute& value) {
  std::string message;
  if (const auto* flag = std::get_if<bool>(&value)) {
    wire::always_integer(message, 5, *flag ? 1 : 0);
  } else if (const auto* integer = std::get_if<std::int64_t>(&value)) {
    wire::always_integer(message, 3, *integer);
  } else if (const auto* real = std::get_if<double>(&value)) {
    wire::always_float(message, 4, static_cast<float>(*real));
  } else if (const auto* text = std::get_if<std::string>(&value)) {
    wire::always_bytes(message, 2, valid_utf8(*text));
  } else if (const auto* integers = std::get_if<std::vector<std::int64_t>>(&value)) {
    std::string list;
    wire::packed(list, 3, *integers);
    wire::always_bytes(message, 1, list);
  } else {
    std::string list;
    const auto& reals = std::get<std::vector<double>>(value);
    if (!reals.empty()) {
      wire::key(list, 4, wire::kBytes);
      wire::varint(list, reals.size() * sizeof(float));
      for (const double number : reals) wire::raw(list, static_cast<float>(number));
    }
    wire::always_bytes(message, 1, list);
  }
  return message;
}

std::string node_message(const GraphNode& node) {
  std::string message;
  wire::bytes(message, 1, valid_utf8(node.name));
  wire::bytes(message, 2, valid_utf8(node.op));
  for (const std::string& input : node.inputs) wire::always_bytes(message, 3, valid_utf8(input));
  wire::bytes(message, 4, valid_utf8(node.device));

  std::map<std::string, std::string> attributes;
  for (const auto& [name, value] : node.attributes) attributes[valid_utf8(name)] = attribute_message(value);
  if (!node.output_shapes.empty()) {
    std::string list, text, shapes;
    for (const GraphShape& shape : node.output_shapes) {
      wire::always_bytes(list, 7, shape_message(shape));
      text += (text.empty() ? "" : ", ") + shape_text(shape);
    }
    wire::always_bytes(shapes, 1, list);
    attributes["_output_shapes"] = shapes;  // TensorBoard hides it in the card, hence also as text.
    attributes.try_emplace("output_shapes", attribute_message(text));
  }
  for (const auto& [name, value] : attributes) {
    std::string entry;
    wire::always_bytes(entry, 1, name);
    wire::always_bytes(entry, 2, value);
    wire::always_bytes(message, 5, entry);
  }
  return message;
}

// "^name" and "name:1" both refer to "name".
std::string_view referred_node(std::string_view input) {
  if (input.starts_with('^')) input.remove_prefix(1);
  const std::size_t colon = input.rfind(':');
  const bool port = colon != std::string_view::npos && colon + 1 < input.size() &&
                    input.find_first_not_of("0123456789", colon + 1) == std::string_view::npos;
  return port ? input.substr(0, colon) : input;
}

void check(const Graph& graph) {
  if (graph.nodes.empty()) throw UsageError("a graph has no nodes; TensorBoard could not show it");
  std::unordered_set<std::string_view> names;
  for (const GraphNode& node : graph.nodes) {
    if (node.name.empty()) throw UsageError("a graph's node has no name (its op is \"" + node.op + "\")");
    if (!names.insert(node.name).second) throw UsageError("the graph has two nodes called " + node.name);
  }
  for (const GraphNode& node : graph.nodes) {
    for (const std::string& input : node.inputs) {
      if (names.count(referred_node(input)) != 0) continue;
      throw UsageError("the graph's node " + node.name + " has the input " + input +
                       ", but no node is called so");
    }
  }
}

}  // namespace

std::string encode_graph(const Graph& graph) {
  check(graph);
  std::string message, versions;
  for (const GraphNode& node : graph.nodes) wire::always_bytes(message, 1, node_message(node));
  wire::integer(versions, 1, kProducer);
  wire::always_bytes(message, 4, versions);
  return message;
}

std::string encode_step_stats(std::span<const NodeProfile> nodes) {
  std::map<std::string, std::string> devices;  // DeviceStepStats, without the name
  for (const NodeProfile& node : nodes) {
    std::string stats;
    wire::bytes(stats, 1, valid_utf8(node.node));
    wire::integer(stats, 2, node.start_micros);
    wire::integer(stats, 4, node.duration_micros);
    wire::integer(stats, 5, node.duration_micros);
    std::string memory;
    wire::bytes(memory, 1, "allocator");
    wire::integer(memory, 2, node.memory_bytes);
    wire::integer(memory, 3, node.memory_bytes);
    wire::always_bytes(stats, 6, memory);
    for (std::size_t slot = 0; slot < node.output_shapes.size(); ++slot) {
      std::string output, tensor;
      wire::integer(tensor, 1, kDtFloat);
      wire::always_bytes(tensor, 2, shape_message(node.output_shapes[slot]));
      wire::integer(output, 1, static_cast<std::int64_t>(slot));
      wire::always_bytes(output, 3, tensor);
      wire::always_bytes(stats, 7, output);
    }
    wire::always_bytes(devices[valid_utf8(node.device)], 2, stats);
  }
  std::string step_stats, run_metadata;
  for (const auto& [name, stats] : devices) {
    std::string device;
    wire::bytes(device, 1, name);
    device += stats;
    wire::always_bytes(step_stats, 1, device);
  }
  wire::always_bytes(run_metadata, 1, step_stats);
  return run_metadata;
}

}  // namespace sweep::tbwriter
