#include "runmanager/terminal/table.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <string_view>
#include <utility>

#include "core/base/printable.h"
#include "core/base/text.h"
#include "runmanager/terminal/terminal.h"
#include "runmanager/text/table_text.h"

namespace sweep {
namespace {

std::vector<std::string> titles_of(const TextTable& table) {
  std::vector<std::string> titles;
  for (const Column& column : table.columns) titles.push_back(column.title);
  return titles;
}

bool has_different_titles(const TextTable& table) {
  const std::vector<std::string> titles = titles_of(table);
  return std::set(titles.begin(), titles.end()).size() == titles.size();
}

int width_of(const TextTable& table, std::size_t column) {
  int width =
      std::max(table.columns[column].min_width, display_width(printable_line(table.columns[column].title)));
  for (const auto& row : table.rows) {
    if (column < row.size()) width = std::max(width, display_width(printable_line(row[column])));
  }
  return width;
}

template <typename Keep>
void keep_columns(TextTable& table, const Keep& keep) {
  const auto filter = [&](auto& list) {
    std::size_t column = 0;
    std::erase_if(list, [&](const auto&) { return !keep(column++); });
  };
  filter(table.columns);
  for (auto& row : table.rows) filter(row);
}

std::string line_of(const TextTable& table, const std::vector<int>& widths,
                    const std::vector<std::string>& cells, const std::string& tail = "") {
  std::string line;
  for (const std::string& cell : padded_cells(table, widths, cells)) line += cell;
  if (!tail.empty()) return line + std::string(kTableGap, ' ') + printable_line(tail);
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

std::string csv_table(const TextTable& table) {
  std::vector<std::string> keys;
  for (const Column& column : table.columns) keys.push_back(column.key.empty() ? column.title : column.key);
  return csv_row(keys) + csv_rows(table);
}

std::string latex_row(const std::vector<std::string>& cells) {
  std::string line;
  for (const std::string& cell : cells) line += (line.empty() ? "  " : " & ") + latex_text(cell);
  return line + " \\\\\n";
}

std::string latex_table(const TextTable& table) {
  std::string alignments;
  for (const Column& column : table.columns) alignments += column.right_aligned ? 'r' : 'l';
  std::string text =
      "\\begin{tabular}{" + alignments + "}\n  \\toprule\n" + latex_row(titles_of(table)) + "  \\midrule\n";
  for (const auto& row : table.rows) text += latex_row(row);
  return text + "  \\bottomrule\n\\end{tabular}\n";
}

}  // namespace

TextTable::TextTable(const std::vector<std::string>& titles, std::size_t left_aligned) {
  for (const std::string& title : titles) add_column(title, columns.size() >= left_aligned);
}

void TextTable::set_importances(std::initializer_list<int> importances) {
  const int* importance = importances.begin();
  for (Column& column : columns) column.importance = *importance++;
}

void TextTable::add_column(std::string title, bool right_aligned) {
  columns.push_back({.title = std::move(title), .right_aligned = right_aligned});
}

std::vector<int> TextTable::widths() const {
  std::vector<int> list;
  for (std::size_t i = 0; i < columns.size(); ++i) list.push_back(kTableGap + width_of(*this, i));
  return list;
}

int TextTable::width() const {
  const std::vector<int> list = widths();
  return std::accumulate(list.begin(), list.end(), 0);
}

void TextTable::drop_empty_columns() {
  std::vector<bool> is_used(columns.size());
  for (const auto& row : rows) {
    for (std::size_t column = 0; column < row.size(); ++column)
      if (!row[column].empty()) is_used[column] = true;
  }
  keep_columns(*this, [&is_used](std::size_t column) { return is_used[column]; });
}

void TextTable::shorten(int limit, bool unicode) {
  for (std::size_t column = 0; column < columns.size(); ++column) {
    if (!columns[column].leads || columns[column].right_aligned) continue;
    std::vector<std::string> texts;
    for (const auto& row : rows) texts.push_back(column < row.size() ? row[column] : "");
    texts = shortened(texts, limit, unicode);
    for (std::size_t i = 0; i < rows.size(); ++i)
      if (column < rows[i].size()) rows[i][column] = std::move(texts[i]);
  }
}

std::vector<std::string> TextTable::fit(int limit, bool unicode) {
  constexpr int kShortText = 12;
  if (width() > limit) shorten(std::clamp(limit / 2, kShortText, kLongText), unicode);
  const std::vector<int> widths = this->widths();
  int total = std::accumulate(widths.begin(), widths.end(), 0);
  std::vector<std::size_t> order(columns.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::erase_if(order, [this](std::size_t i) { return columns[i].importance >= kNeeded; });
  std::ranges::stable_sort(order, {},
                           [&](std::size_t i) { return std::pair(columns[i].importance, -widths[i]); });
  std::vector<bool> is_shown(columns.size(), true);
  for (const std::size_t i : order) {
    if (total <= limit) break;
    is_shown[i] = false;
    total -= widths[i];
  }
  for (auto i = order.rbegin(); i != order.rend(); ++i) {
    if (is_shown[*i] || total + widths[*i] > limit) continue;
    is_shown[*i] = true;
    total += widths[*i];
  }
  std::vector<std::string> left_out;
  for (const std::size_t i : order) {
    if (!is_shown[i]) left_out.push_back(columns[i].title);
  }
  keep_columns(*this, [&is_shown](std::size_t i) { return is_shown[i]; });
  for (const int longest : {kLongText / 2, kShortText})
    if (width() > limit) shorten(longest, unicode);
  return left_out;
}

bool TextTable::fit_titles(int limit, bool unicode) {
  constexpr int kMinTitle = 3;
  const auto is_wide = [this, limit] { return limit > 0 && width() > limit; };
  const std::vector<Column> whole = columns;
  for (int title = limit; is_wide() && title >= kMinTitle; --title) {
    for (std::size_t c = 1; c < columns.size(); ++c)
      columns[c].title = fit_width(whole[c].title, title, unicode);
  }
  return !is_wide();
}

std::vector<std::string> shortened(const std::vector<std::string>& texts, int limit, bool unicode) {
  constexpr int kMaxLimit = 1024;
  const std::set<std::string_view> different(texts.begin(), texts.end());
  // Not at the other end as well, if they are cut already.
  const bool has_ends =
      std::ranges::any_of(texts, [&](const auto& text) { return text.starts_with(unicode ? "…" : "~"); });
  for (;; limit *= 2) {
    for (const auto& cut : {has_ends ? fit_end : fit_width, has_ends ? fit_width : fit_end}) {
      std::set<std::string> seen;
      for (const std::string_view text : different) seen.insert(cut(text, limit, unicode));
      if (seen.size() < different.size() && limit < kMaxLimit) continue;
      std::vector<std::string> list(texts.size());
      std::ranges::transform(texts, list.begin(),
                             [&](const auto& text) { return cut(text, limit, unicode); });
      return list;
    }
  }
}

std::string not_shown_text(const std::vector<std::string>& titles, int width) {
  std::string text, line = "  not shown for lack of width:";
  for (const std::string& title : titles) {
    const std::string word = " " + printable_line(title) + (&title == &titles.back() ? "" : ",");
    if (display_width(line + word) > width) text += std::exchange(line, "   ") + "\n";
    line += word;
  }
  return titles.empty() ? "" : text + line + "\n";
}

std::vector<std::string> padded_cells(const TextTable& table, const std::vector<int>& widths,
                                      const std::vector<std::string>& cells) {
  std::vector<std::string> list;
  const std::string gap(kTableGap, ' ');
  for (std::size_t i = 0; i < cells.size(); ++i)
    list.push_back(gap +
                   padded(printable_line(cells[i]), widths[i] - kTableGap, table.columns[i].right_aligned));
  return list;
}

TableLines table_lines(const TextTable& table, bool unicode) {
  const std::vector<int> widths = table.widths();
  TableLines lines{.titles = line_of(table, widths, titles_of(table)), .rule = "", .rows = {}};
  for (const int width : widths) lines.rule += std::string(kTableGap, ' ') + rule(width - kTableGap, unicode);
  for (std::size_t i = 0; i < table.rows.size(); ++i)
    lines.rows.push_back(line_of(table, widths, table.rows[i], table.tails.empty() ? "" : table.tails[i]));
  return lines;
}

std::string csv_rows(const TextTable& table) {
  std::string csv;
  for (std::vector<std::string> row : table.rows) {
    row.resize(table.columns.size());
    csv += csv_row(row);
  }
  return csv;
}

std::string formatted_table(TextTable table, const TableStyle& style) {
  if (style.format == TableFormat::kCsv) return csv_table(table);
  if (style.format == TableFormat::kMarkdown) return markdown_table(titles_of(table), table.rows);
  if (style.format == TableFormat::kLatex) return latex_table(table);
  std::vector<std::string> left_out;
  if (style.width > 0) {
    left_out = table.fit(style.width, style.unicode);
    TextTable cut = table;
    if (cut.fit_titles(style.width, style.unicode) && has_different_titles(cut)) table = std::move(cut);
  }
  const TableLines lines = table_lines(table, style.unicode);
  std::string text = lines.titles + "\n" + lines.rule + "\n";
  for (const std::string& row : lines.rows) text += row + "\n";
  return text + not_shown_text(left_out, style.width);
}

std::string formatted_tables(const std::vector<TextTable>& tables, const TableStyle& style) {
  std::string text;
  for (const TextTable& table : tables) {
    if (!text.empty() && style.format == TableFormat::kCsv) break;
    text += (text.empty() ? "" : "\n") + formatted_table(table, style);
  }
  return text;
}

std::string latex_text(const std::string& text) {
  return substituted(printable_line(text), {{'&', "\\&"},
                                            {'%', "\\%"},
                                            {'$', "\\$"},
                                            {'#', "\\#"},
                                            {'_', "\\_"},
                                            {'{', "\\{"},
                                            {'}', "\\}"},
                                            {'[', "{[}"},  // after a line's end these two would belong to it
                                            {'*', "{*}"},
                                            {'<', "\\textless{}"},
                                            {'>', "\\textgreater{}"},
                                            {'|', "\\textbar{}"},
                                            {'~', "\\textasciitilde{}"},
                                            {'^', "\\textasciicircum{}"},
                                            {'\\', "\\textbackslash{}"}});
}

}  // namespace sweep
