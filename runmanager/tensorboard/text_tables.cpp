#include "runmanager/tensorboard/text_tables.h"

#include <fmt/format.h>

#include <vector>

#include "core/network/layers.h"
#include "core/network/network.h"
#include "runmanager/text/table_text.h"

namespace sweep {
namespace {

using Json = nlohmann::ordered_json;

std::vector<std::string> class_cells(const Json& count, double samples) {
  return {fmt::format("{}", count.get<std::size_t>()),
          fmt::format("{:.3g} %", 100 * count.get<double>() / samples)};
}

std::vector<std::string> target_cells(const Json& target, double) {
  return {fmt::format("{:.6g}", target.at("mean").get<double>()),
          fmt::format("{:.6g}", target.at("deviation").get<double>())};
}

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

std::string data_table(const Json& balance) {
  if (!balance.is_array() || balance.empty()) return "";
  const bool has_classes = balance.front().contains("classes");
  const char* key = has_classes ? "classes" : "targets";
  const auto cells = has_classes ? class_cells : target_cells;
  std::vector<std::string> header = {has_classes ? "class" : "target"};
  std::vector<std::vector<std::string>> rows;
  for (const auto& [name, first] : balance.front().at(key).items()) rows.push_back({name});
  if (has_classes) rows.push_back({"all"});
  for (const Json& part : balance) {
    const auto name = part.at("part").get<std::string>();
    const auto samples = part.at("samples").get<double>();
    header.push_back(has_classes ? name : name + ": mean");
    header.push_back(has_classes ? "" : "deviation");
    std::size_t row = 0;
    for (const auto& [ignored, value] : part.at(key).items()) {
      for (std::string& cell : cells(value, samples)) rows.at(row).push_back(std::move(cell));
      ++row;
    }
    if (has_classes) rows.back().insert(rows.back().end(), {fmt::format("{:.0f}", samples), ""});
  }
  return markdown_table(header, rows);
}

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
