#include "runmanager/text/csv.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <span>

#include "core/base/text.h"
#include "core/data/readers/csv_rows.h"

namespace sweep {
namespace {

// Cells with leading or trailing spaces are also quoted, because some readers strip them.
std::string csv_field(const std::string& text) {
  const bool plain = text.find_first_of(",\"\r\n") == std::string::npos &&
                     (text.empty() || (text.front() != ' ' && text.back() != ' '));
  return plain ? text : '"' + substituted(text, {{'"', "\"\""}}) + '"';
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

}  // namespace sweep
