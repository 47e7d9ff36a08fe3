#include "runmanager/terminal/repeats_table.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <optional>
#include <string_view>
#include <utility>

#include "runmanager/records/repeats.h"
#include "runmanager/terminal/table.h"
#include "runmanager/terminal/terminal.h"
#include "runmanager/terminal/text_table.h"

namespace sweep {
namespace {

enum class Unit { kNumber, kShare, kSeconds };

struct Quantity {
  std::string title;
  Unit unit;
  std::optional<double> (*of)(const RunRecord& run);
};

const std::array<Quantity, 8>& quantities() {
  using Run = RunRecord;
  static const std::array<Quantity, 8> list = {
      {{"loss", Unit::kNumber, [](const Run& r) { return std::optional(r.epochs.back().loss); }},
       {"accuracy", Unit::kShare, [](const Run& r) { return r.epochs.back().accuracy; }},
       {"val loss", Unit::kNumber, [](const Run& r) { return r.epochs.back().validation_loss; }},
       {"val acc", Unit::kShare, [](const Run& r) { return r.epochs.back().validation_accuracy; }},
       {"val RMSE", Unit::kNumber, [](const Run& r) { return r.epochs.back().validation_measures[kRmse]; }},
       {"test acc", Unit::kShare, [](const Run& r) { return metric_of(r, "test_accuracy"); }},
       {"test RMSE", Unit::kNumber, [](const Run& r) { return metric_of(r, "test_rmse"); }},
       {"s/epoch", Unit::kSeconds, [](const Run& r) { return std::optional(mean_epoch_seconds(r)); }}}};
  return list;
}

std::string spread_text(const Spread& spread, Unit unit, const char* plus_minus) {
  switch (unit) {
    case Unit::kShare:
      return fmt::format("{:.2f}% {} {:.2f}", 100 * spread.mean, plus_minus, 100 * spread.deviation);
    case Unit::kSeconds:
      return fmt::format("{} {} {}", human_seconds(spread.mean), plus_minus, human_seconds(spread.deviation));
    case Unit::kNumber:
      break;
  }
  return fmt::format("{:.4f} {} {:.4f}", spread.mean, plus_minus, spread.deviation);
}

// The cell of a quantity; "" if a run has none.
std::string cell(const std::vector<const RunRecord*>& runs, const Quantity& quantity,
                 const char* plus_minus) {
  std::vector<double> values;
  for (const RunRecord* run : runs) {
    const std::optional<double> value = quantity.of(*run);
    if (!value) return "";
    values.push_back(*value);
  }
  return spread_text(spread_of(values), quantity.unit, plus_minus);
}

void drop_column(TextTable& table, std::size_t column) {
  const auto at = static_cast<std::ptrdiff_t>(column);
  table.header.erase(table.header.begin() + at);
  for (auto& row : table.rows) row.erase(row.begin() + at);
  if (column < table.left_aligned) --table.left_aligned;
}

// Removes columns without any cell.
void drop_empty_columns(TextTable& table) {
  for (std::size_t column = table.header.size(); column-- > 0;) {
    bool used = false;
    for (const auto& row : table.rows) used |= !row[column].empty();
    if (!used) drop_column(table, column);
  }
}

constexpr int kNeeded = 900;

// What is left out first where there is no room.
int importance_of(const TextTable& table, std::size_t column) {
  if (column < table.left_aligned) {
    for (const auto& row : table.rows) {
      if (row[column] != table.rows[0][column]) return table.left_aligned > 1 ? 50 : kNeeded;
    }
    return 10;
  }
  constexpr std::array<std::pair<std::string_view, int>, 5> kFirst = {
      {{"val loss", 20}, {"loss", 30}, {"s/epoch", 40}, {"accuracy", 60}, {"repeats", 15}}};
  for (const auto& [title, importance] : kFirst) {
    if (table.header[column] == title) return importance;
  }
  return kNeeded;
}

void fit_columns(TextTable& table, int width, bool unicode) {
  while (display_width(table_lines(table, unicode).rule) > width) {
    std::size_t least = 0;
    for (std::size_t column = 1; column < table.header.size(); ++column) {
      if (importance_of(table, column) < importance_of(table, least)) least = column;
    }
    if (table.header.size() == 1 || importance_of(table, least) == kNeeded) return;
    drop_column(table, least);
  }
}

}  // namespace

std::string repeats_table(const std::vector<RunRecord>& runs, const std::vector<std::string>& keys,
                          bool unicode, int width) {
  TextTable table{.header = {}, .rows = {}, .left_aligned = 0};
  for (const std::string& key : keys) {
    if (key != kRepeatKey) table.header.push_back(key);
  }
  table.left_aligned = table.header.size();
  table.header.emplace_back("repeats");
  for (const Quantity& quantity : quantities()) table.header.push_back(quantity.title);
  std::vector<Params> params;
  params.reserve(runs.size());
  for (const RunRecord& run : runs) params.push_back(run.params);
  for (const RepeatGroup& group : repeat_groups(params)) {
    const auto repeats = completed_repeats(group, runs);
    if (!repeats) continue;
    std::vector<std::string> row;
    for (std::size_t i = 0; i < table.left_aligned; ++i)
      row.push_back(param_text(group.params, table.header[i]));
    row.push_back(std::to_string(repeats->runs.size()));
    for (const Quantity& quantity : quantities())
      row.push_back(cell(repeats->runs, quantity, unicode ? "±" : "+-"));
    table.rows.push_back(std::move(row));
  }
  if (table.rows.empty()) return "";
  drop_empty_columns(table);
  if (width > 0) fit_columns(table, width, unicode);
  return fmt::format("\nMean {} standard deviation over repeats:\n\n{}", unicode ? "±" : "+-",
                     terminal_table(table, unicode));
}

}  // namespace sweep
