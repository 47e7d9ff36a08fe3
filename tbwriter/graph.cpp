#include <map>
#include <span>
#include <string_view>
#include <unordered_set>

#include "tbwriter/summary_writer_state.h"

namespace sweep::tbwriter {
namespace {

constexpr std::int64_t kProducer = 22;  // GraphDef version, as PyTorch's writer sets it

// "[?, 6, 24, 24]", like TensorBoard's labels of edges.
std::string edge_label(const GraphShape& shape) {
  std::string text = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) {
    text += (i > 0 ? ", " : "") + (shape[i] < 0 ? std::string("?") : std::to_string(shape[i]));
  }
  return text + "]";
}

// Members of AttrValue's oneof, and of the lists in it.
std::string encode_attribute(const GraphAttribute& value) {
  Message message, list;
  if (const auto* flag = std::get_if<bool>(&value)) return message.always(5, std::int64_t{*flag}).take();
  if (const auto* integer = std::get_if<std::int64_t>(&value)) return message.always(3, *integer).take();
  if (const auto* real = std::get_if<double>(&value))
    return message.always(4, static_cast<float>(*real)).take();
  if (const auto* text = std::get_if<std::string>(&value))
    return message.message(2, valid_utf8(*text)).take();
  if (const auto* integers = std::get_if<std::vector<std::int64_t>>(&value))
    return message.message(1, list.packed(3, *integers).take()).take();
  const auto& reals = std::get<std::vector<double>>(value);
  const std::vector<float> floats(reals.begin(), reals.end());
  return message.message(1, list.packed(4, std::span<const float>(floats)).take()).take();
}

std::string encode_node(const GraphNode& node) {
  std::map<std::string, std::string> attributes;
  for (const auto& [name, value] : node.attributes) attributes[valid_utf8(name)] = encode_attribute(value);
  if (!node.output_shapes.empty()) {
    const std::string list = Message().repeated(7, node.output_shapes, encode_shape).take();
    std::string text;
    for (const GraphShape& shape : node.output_shapes) text += (text.empty() ? "" : ", ") + edge_label(shape);
    attributes["_output_shapes"] = Message().message(1, list).take();  // TensorBoard hides it in the card,
    attributes.try_emplace("output_shapes", encode_attribute(text));   // hence also as text.
  }
  const auto to_utf8 = [](const std::string& text) { return valid_utf8(text); };
  const auto encode_entry = [](const auto& entry) {
    return Message().message(1, entry.first).message(2, entry.second).take();
  };
  return Message()
      .text(1, node.name)
      .text(2, node.op)
      .repeated(3, node.inputs, to_utf8)
      .text(4, node.device)
      .repeated(5, attributes, encode_entry)
      .take();
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
  require(!graph.nodes.empty(), "a graph has no nodes; TensorBoard could not show it");
  std::unordered_set<std::string_view> names;
  for (const GraphNode& node : graph.nodes) {
    require(!node.name.empty(), "a graph's node has no name (its op is \"", node.op, "\")");
    require(names.insert(node.name).second, "the graph has two nodes called ", node.name);
  }
  for (const GraphNode& node : graph.nodes) {
    for (const std::string& input : node.inputs)
      require(names.contains(referred_node(input)), "the graph's node ", node.name, " has the input ", input,
              ", but no node is called so");
  }
}

// RunMetadata: time and memory of each node in one step.
std::string encode_step_stats(std::span<const NodeProfile> nodes) {
  std::map<std::string, std::string> devices;  // the NodeExecStats of each device
  for (const NodeProfile& node : nodes) {
    Message stats;
    stats.text(1, node.node)
        .integer(2, node.start_micros)
        .integer(4, node.duration_micros)
        .integer(5, node.duration_micros)
        .message(6, Message()
                        .bytes(1, "allocator")
                        .integer(2, node.memory_bytes)
                        .integer(3, node.memory_bytes)
                        .take());
    for (std::size_t slot = 0; slot < node.output_shapes.size(); ++slot) {
      Message output, tensor;
      tensor.integer(1, kDtFloat).message(2, encode_shape(node.output_shapes[slot]));
      output.integer(1, static_cast<std::int64_t>(slot)).message(3, tensor.take());
      stats.message(7, output.take());
    }
    Message(devices[valid_utf8(node.device)]).message(2, stats.take());
  }
  Message step_stats;
  for (const auto& [name, stats] : devices) step_stats.message(1, Message().bytes(1, name).take() + stats);
  return Message().message(1, step_stats.take()).take();
}

}  // namespace

void SummaryWriter::add_graph(const Graph& graph, std::optional<double> wall_time) {
  check(graph);
  const std::string encoded = Message()
                                  .repeated(1, graph.nodes, encode_node)
                                  .message(4, Message().integer(1, kProducer).take())
                                  .take();
  std::unordered_set<std::string> nodes;
  for (const GraphNode& node : graph.nodes) nodes.insert(node.name);
  const std::lock_guard lock(state_->mutex);
  require(!state_->graph_nodes, "this run has a graph already; TensorBoard shows one per run");
  state_->add_event("graph", state_->time_of(wall_time), 0, kGraphDef, encoded);
  state_->graph_nodes = std::move(nodes);
}

void SummaryWriter::add_graph_profile(std::string_view tag, std::span<const NodeProfile> nodes,
                                      std::int64_t step) {
  state_->check_open(tag);
  {
    const std::lock_guard lock(state_->mutex);
    const auto& known = state_->graph_nodes;
    require(known || state_->options.purge_step > 0,
            "a profile comes before the graph that it belongs to; call add_graph() first");
    for (const NodeProfile& node : nodes)
      require(!known || known->contains(node.node), "the profile has the node ", node.node,
              ", but the graph has none of that name");
  }
  state_->add_event(tag, state_->now(), step, kTaggedRunMetadata,
                    Message().text(1, tag).bytes(2, encode_step_stats(nodes)).take());
}

}  // namespace sweep::tbwriter
