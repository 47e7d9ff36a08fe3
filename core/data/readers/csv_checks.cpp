#include "core/data/readers/csv_checks.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/data/readers/input_file.h"

namespace sweep {
namespace {

// Where some columns have decimal commas, the points of others may separate thousands.
void check_thousands(std::span<const TableColumn> columns, const std::string& name) {
  const bool has_comma =
      std::ranges::any_of(columns, [](const TableColumn& column) { return column.feature().decimal_comma; });
  for (const TableColumn& column : columns) {
    if (!has_comma || column.thousands().empty()) continue;
    throw DataError(name + ": column " + quoted_name(column.feature().name) + " has numbers such as " +
                    quoted_name(column.thousands()) +
                    ", and others have decimal commas: if its points separate thousands, take them out, else "
                    "write commas");
  }
}

// Samples and targets are float32, also before they are normalised.
void check_ranges(std::span<const TableColumn> columns, const std::string& name) {
  for (const TableColumn& column : columns) {
    const std::string range = column.unresolved_range();
    if (range.empty()) continue;
    throw DataError(name + ": column " + quoted_name(column.feature().name) + " holds numbers from " + range +
                    ", of which float32 tells fewer than 256 apart: subtract a constant from them, or list "
                    "the column under \"ignore\" or \"categorical\"");
  }
}

// A column of ids, dates or free text would become a feature per row, of which a network learns nothing.
void check_no_ids(std::span<const TableColumn> columns, const std::string& name) {
  std::string refused;
  for (const TableColumn& column : columns) {
    if (!column.names_rows()) continue;
    const FeatureColumn& feature = column.feature();
    refused += (refused.empty() ? "" : ", ") + quoted_name(feature.name) +
               (column.holds_dates() ? " (dates, " : " (") + std::to_string(feature.categories.size()) +
               " values, as " + shown_field(feature.categories.front()) + ")";
  }
  if (!refused.empty()) {
    throw DataError(name + ": these columns tell rows apart instead of describing them: " + refused +
                    ". List them under \"ignore\", or under \"categorical\" if their values are categories");
  }
}

}  // namespace

void check_columns(std::span<const TableColumn> columns, const ReadOptions& options, const std::string& name,
                   std::vector<std::string>& notes) {
  check_no_ids(columns, name);
  check_thousands(columns, name);
  check_ranges(columns, name);
  std::string commas;
  std::vector<std::string> constant;
  for (const TableColumn& column : columns) {
    if (column.use() != ColumnUse::kFeature) continue;
    const std::string quoted = quoted_name(column.feature().name);
    if (column.feature().decimal_comma) commas += (commas.empty() ? "" : ", ") + quoted;
    if (column.is_constant())
      constant.push_back(name + ": column " + quoted + " has the same value in all rows");
  }
  if (!commas.empty() && options.decimal == DecimalMark::kAuto) {
    notes.push_back(name + ": numbers with a decimal comma are in " + commas +
                    "; \"decimal\": \".\" makes them text");
  }
  notes.insert(notes.end(), constant.begin(), constant.end());
}

}  // namespace sweep
