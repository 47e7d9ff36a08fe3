#include "runmanager/tensorboard/data_table.h"

#include <fmt/format.h>

#include <vector>

#include "runmanager/text/markdown.h"

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

}  // namespace sweep
