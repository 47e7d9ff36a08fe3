#include "runmanager/text/table_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>

#include "core/base/text.h"
#include "core/data/readers/csv_rows.h"
#include "runmanager/text/json_output.h"

namespace sweep {
namespace {

using Json = nlohmann::ordered_json;

// Cells with leading or trailing spaces are also quoted, because some readers strip them.
std::string csv_field(const std::string& text) {
  const bool plain = text.find_first_of(",\"\r\n") == std::string::npos &&
                     (text.empty() || (text.front() != ' ' && text.back() != ' '));
  return plain ? text : '"' + substituted(text, {{'"', "\"\""}}) + '"';
}

// Strings lose the quotes of JSON. Bytes that are not UTF-8 are replaced.
std::string plain(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  return compact_json_text(value);
}

void flatten(const Json& value, const std::string& path, std::vector<std::vector<std::string>>& rows) {
  const auto below = [&path](const std::string& key) { return path.empty() ? key : path + "." + key; };
  const bool holds_objects = value.is_array() && std::ranges::any_of(value, &Json::is_object);
  if (value.is_object() && !value.empty()) {
    for (const auto& [key, child] : value.items()) flatten(child, below(key), rows);
  } else if (holds_objects) {
    // One row per element: a layer's arguments are easier to read together.
    for (std::size_t i = 0; i < value.size(); ++i)
      rows.push_back({below(std::to_string(i)), plain(value[i])});
  } else {
    rows.push_back({path, plain(value)});
  }
}

}  // namespace

std::string csv_row(const std::vector<std::string>& cells) {
  std::string row;
  for (std::size_t i = 0; i < cells.size(); ++i) row += (i > 0 ? "," : "") + csv_field(cells[i]);
  return row + "\n";
}

std::string csv_number(double value) {
  if (std::isnan(value)) return "nan";
  return fmt::format("{}", value);
}

std::string csv_number(const std::optional<double>& value) { return value ? csv_number(*value) : ""; }

std::vector<std::vector<std::string>> parse_csv_text(std::string_view text, std::string_view where) {
  const auto read = [&text](std::span<std::uint8_t> out) {
    const std::size_t count = text.copy(reinterpret_cast<char*>(out.data()), out.size());
    text.remove_prefix(count);
    return count;
  };
  CsvRows rows({read, text.size(), std::string(where)});
  std::vector<std::vector<std::string>> all;
  while (rows.next()) all.push_back(rows.fields());
  return all;
}

std::string markdown_text(std::string_view text) {
  // TensorBoard would show the escape \~.
  return substituted(text, {{'\n', " "},
                            {'\r', " "},
                            {'\t', " "},
                            {'<', "&lt;"},
                            {'>', "&gt;"},
                            {'&', "&amp;"},
                            {'|', "&#124;"},
                            {'~', "&#126;"},
                            {'\\', "\\\\"},
                            {'`', "\\`"},
                            {'*', "\\*"},
                            {'_', "\\_"},
                            {'[', "\\["},
                            {']', "\\]"},
                            {'#', "\\#"}});
}

std::string markdown_table(const std::vector<std::string>& header,
                           const std::vector<std::vector<std::string>>& rows) {
  const auto line = [&header](const std::vector<std::string>& cells) {
    std::string text = "|";
    for (std::size_t i = 0; i < header.size(); ++i) {
      text += " " + (i < cells.size() ? markdown_text(cells[i]) : std::string()) + " |";
    }
    return text + "\n";
  };
  std::string table = line(header) + "|";
  for (std::size_t i = 0; i < header.size(); ++i) table += " --- |";
  table += "\n";
  for (const auto& row : rows) table += line(row);
  return table;
}

std::string markdown_table(const Json& object) {
  std::vector<std::vector<std::string>> rows;
  if (!object.is_null()) flatten(object, "", rows);
  return markdown_table({"key", "value"}, rows);
}

}  // namespace sweep
