// A table of texts: it fits itself into a width, and prints itself in the forms that people paste it into.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "core/base/enum_names.h"

namespace sweep {

/// The importance of a column that is never left out.
inline constexpr int kNeeded = 900;

struct Column {
  std::string title;
  bool right_aligned = true;  // as numbers are
  int importance = kNeeded;   // see TextTable::fit()
  int min_width = 0;          // so that it stays where it is while its numbers change
  bool leads = false;         // tells what a row is about; what it has to say follows
  std::string key = {};       // the title for programs; "": the same
};

/// Blanks between columns, and in front of the first.
inline constexpr int kTableGap = 2;

struct TextTable {
  std::vector<Column> columns;
  std::vector<std::vector<std::string>> rows;  // each as long as `columns`, or shorter
  std::vector<std::string> tails = {};         // by row: what follows the last cell, of any width; or empty

  TextTable() = default;
  /// Columns with these titles; the first `left_aligned` are texts.
  explicit TextTable(const std::vector<std::string>& titles, std::size_t left_aligned = 1);

  /// Sets those of all columns, of which there are not more; see fit().
  void set_importances(std::initializer_list<int> importances);
  /// Adds a column that is never left out; rows do not change.
  void add_column(std::string title, bool right_aligned = true);
  /// Adds a column to every row: cell(item) for each of `items`, which are the rows of all columns.
  template <typename Items, typename Cell>
  void add_column(Column column, const Items& items, const Cell& cell) {
    columns.push_back(std::move(column));
    rows.resize(std::size(items));
    std::size_t row = 0;
    for (const auto& item : items) rows[row++].push_back(cell(item));
  }

  /// Display columns that each column takes, with the gap in front of it; and all of them.
  std::vector<int> widths() const;
  int width() const;
  /// Removes columns without any cell.
  void drop_empty_columns();
  /// Removes columns until the table is no wider than `limit`, the least important first, and of equal ones
  /// the widest. Then puts back those that fit after all. Returns the titles of those that are gone. If the
  /// table is too wide, texts of columns that lead are cut first, to 12 to 32 columns; and once more, to 16
  /// and 12, if no other column is left to remove.
  std::vector<std::string> fit(int limit, bool unicode = true);
  /// Cuts the texts of columns that lead, see shortened().
  void shorten(int limit, bool unicode);
  /// Cuts the titles after the first, to 3 columns at least, until the table is no wider than `limit`; 0:
  /// any. Returns whether it is.
  bool fit_titles(int limit, bool unicode);
};

/// Max columns of a text that leads, if it is cut.
inline constexpr int kLongText = 32;
/// `texts`, those of more than `limit` columns cut at their ends, or at their beginnings if only that tells
/// different ones apart; if neither does, to more columns.
std::vector<std::string> shortened(const std::vector<std::string>& texts, int limit, bool unicode);

/// "  not shown for lack of width: memory, disk" for what TextTable::fit(width) returned, in lines of up to
/// that width, with their ends; "" for nothing.
std::string not_shown_text(const std::vector<std::string>& titles, int width);

/// `cells`, a row of `table` or its titles, each with a gap in front. `widths`: those of the table.
std::vector<std::string> padded_cells(const TextTable& table, const std::vector<int>& widths,
                                      const std::vector<std::string>& cells);

/// The lines of a table without their ends, and without blanks at them.
struct TableLines {
  std::string titles, rule;
  std::vector<std::string> rows;
};
TableLines table_lines(const TextTable& table, bool unicode);

/// What a table is printed for. kJson is for commands: they print more than their tables.
enum class TableFormat { kText, kCsv, kMarkdown, kLatex, kJson };
inline const EnumNames<TableFormat>& table_format_names() {
  static const EnumNames<TableFormat> names("format", {"text", "csv", "markdown", "latex", "json"});
  return names;
}

/// How tables are printed.
struct TableStyle {
  TableFormat format = TableFormat::kText;
  bool unicode = true;
  int width = 0;  // of kText: max columns of a line; 0: any
};

/// The rows as CSV, without titles.
std::string csv_rows(const TextTable& table);
/// As CSV, with Column::key for titles; as Markdown; or for LaTeX with booktabs, an environment `tabular`.
/// kText and kJson: for a terminal, columns two blanks apart, indented by two, with a rule below the titles;
/// what fits, and the titles that have no room. Control characters and line breaks are shown as escapes.
std::string formatted_table(TextTable table, const TableStyle& style);
/// Several tables with blank lines between them; as CSV only the first, since such a file holds one.
std::string formatted_tables(const std::vector<TextTable>& tables, const TableStyle& style);
/// `text` as LaTeX shows it unchanged.
std::string latex_text(const std::string& text);

}  // namespace sweep
