// A table of texts, in the forms that people paste it into.
#pragma once

#include <string>
#include <vector>

namespace sweep {

struct TextTable {
  std::vector<std::string> header;
  std::vector<std::vector<std::string>> rows;  // each as long as the header, or shorter
  std::size_t left_aligned = 1;                // so many first columns; the others hold numbers
  std::vector<bool> right_aligned = {};        // by column, in place of left_aligned; empty: that counts
  std::vector<std::string> tails = {};         // by row: what follows the last cell, of any width; or empty
};

/// The lines of a table without their ends, each indented by kTableGap blanks and without blanks at its end.
struct TableLines {
  std::string titles, rule;
  std::vector<std::string> rows;
};

/// Blanks between columns, and in front of the first.
inline constexpr int kTableGap = 2;

/// The lines that terminal_table() joins.
TableLines table_lines(const TextTable& table, bool unicode);
/// For a terminal: columns two blanks apart, indented by two, with a rule below the header. Control
/// characters are shown as escapes.
std::string terminal_table(const TextTable& table, bool unicode);
/// The same for LaTeX with booktabs: an environment `tabular`.
std::string latex_table(const TextTable& table);
/// `text` as LaTeX shows it unchanged.
std::string latex_text(const std::string& text);

}  // namespace sweep
