#include "runmanager/terminal/text_table.h"

#include <algorithm>

#include "core/base/printable.h"
#include "runmanager/terminal/terminal.h"

namespace sweep {
namespace {

std::string terminal_row(const std::vector<std::string>& cells, const std::vector<int>& widths,
                         std::size_t left_aligned) {
  std::string line;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    line += "  " + padded(printable(cells[i]), widths[i], i >= left_aligned);
  }
  line.erase(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

std::string latex_row(const std::vector<std::string>& cells) {
  std::string line;
  for (const std::string& cell : cells) line += (line.empty() ? "  " : " & ") + latex_text(cell);
  return line + " \\\\\n";
}

}  // namespace

std::string terminal_table(const TextTable& table, bool unicode) {
  std::vector<int> widths(table.header.size(), 0);
  const auto widen = [&widths](const std::vector<std::string>& cells) {
    for (std::size_t i = 0; i < cells.size(); ++i)
      widths[i] = std::max(widths[i], display_width(printable(cells[i])));
  };
  widen(table.header);
  for (const auto& row : table.rows) widen(row);
  std::string text = terminal_row(table.header, widths, table.left_aligned);
  for (const int width : widths) text += "  " + rule(width, unicode);
  text += "\n";
  for (const auto& row : table.rows) text += terminal_row(row, widths, table.left_aligned);
  return text;
}

std::string latex_text(const std::string& text) {
  std::string escaped;
  for (const char c : printable(text)) {
    switch (c) {
      case '&':
      case '%':
      case '$':
      case '#':
      case '_':
      case '{':
      case '}':
        escaped += '\\';
        escaped += c;
        break;
      case '~':
        escaped += "\\textasciitilde{}";
        break;
      case '^':
        escaped += "\\textasciicircum{}";
        break;
      case '\\':
        escaped += "\\textbackslash{}";
        break;
      default:
        escaped += c;
    }
  }
  return escaped;
}

std::string latex_table(const TextTable& table) {
  std::string columns;
  for (std::size_t i = 0; i < table.header.size(); ++i) columns += i < table.left_aligned ? 'l' : 'r';
  std::string text =
      "\\begin{tabular}{" + columns + "}\n  \\toprule\n" + latex_row(table.header) + "  \\midrule\n";
  for (const auto& row : table.rows) text += latex_row(row);
  return text + "  \\bottomrule\n\\end{tabular}\n";
}

}  // namespace sweep
