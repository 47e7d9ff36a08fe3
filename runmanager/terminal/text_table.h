// A table of texts, in the forms that people paste it into.
#pragma once

#include <string>
#include <vector>

namespace sweep {

struct TextTable {
  std::vector<std::string> header;
  std::vector<std::vector<std::string>> rows;  // each as long as the header
  std::size_t left_aligned = 1;                // so many first columns; the others hold numbers
};

/// For a terminal: columns two blanks apart, indented by two, with a rule below the header. Control
/// characters are shown as escapes.
std::string terminal_table(const TextTable& table, bool unicode);
/// The same for LaTeX with booktabs: an environment `tabular`.
std::string latex_table(const TextTable& table);
/// `text` as LaTeX shows it unchanged.
std::string latex_text(const std::string& text);

}  // namespace sweep
