#include "runmanager/tensorboard/network_table.h"

#include <fmt/format.h>

#include <vector>

#include "core/network/layers.h"
#include "core/network/network.h"
#include "runmanager/text/markdown.h"

namespace sweep {
namespace {

// "60 000", so that orders of magnitude are seen. U+202F keeps the groups together.
std::string grouped(double count) {
  std::string digits = fmt::format("{:.0f}", count), text;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) text += "\u202F";
    text += digits[i];
  }
  return text;
}

// "6 x 24 x 24": brackets would look like a link.
std::string shape_text(const Shape& shape) {
  std::string text;
  for (const std::int64_t extent : shape) text += (text.empty() ? "" : " × ") + std::to_string(extent);
  return text;
}

// "out_channels 6, kernel_size [5, 5]", in PyTorch's order. Defaults are left out.
std::string arguments_text(const Layer& layer) {
  std::string text;
  const NamedType* type = find_type(layer_types(), layer.type);
  if (type == nullptr) return text;
  for (const ArgumentType& argument : type->arguments) {
    const auto value = layer.arguments.find(argument.name);
    if (value == layer.arguments.end() || value->second == argument.default_value) continue;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", argument.name, to_string(value->second));
  }
  return text;
}

}  // namespace

std::string network_table(const Network& network) {
  std::vector<std::vector<std::string>> rows = {{"input", "", "", shape_text(network.input()), "", ""}};
  for (const Layer& layer : network.layers()) {
    std::size_t parameters = 0;
    for (const std::size_t index : layer.parameters) parameters += network.parameters()[index].count;
    const double flops = network.forward_flops(layer);
    rows.push_back({layer.name, layer.type, arguments_text(layer), shape_text(layer.output),
                    parameters == 0 ? "" : grouped(static_cast<double>(parameters)),
                    flops == 0 ? "" : grouped(flops)});
  }
  rows.push_back({"all", "", "", "", grouped(static_cast<double>(network.parameter_count())),
                  grouped(network.forward_flops())});
  return markdown_table({"layer", "type", "arguments", "output", "parameters", "FLOPs"}, rows);
}

}  // namespace sweep
