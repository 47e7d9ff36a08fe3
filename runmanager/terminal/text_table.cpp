#include "runmanager/terminal/text_table.h"

#include <algorithm>

#include "core/base/printable.h"
#include "runmanager/terminal/terminal.h"

namespace sweep {
namespace {

bool is_right_aligned(const TextTable& table, std::size_t column) {
  return table.right_aligned.empty() ? column >= table.left_aligned : table.right_aligned[column];
}

std::string without_trailing_blanks(std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

std::string latex_row(const std::vector<std::string>& cells) {
  std::string line;
  for (const std::string& cell : cells) line += (line.empty() ? "  " : " & ") + latex_text(cell);
  return line + " \\\\\n";
}

}  // namespace

TableLines table_lines(const TextTable& table, bool unicode) {
  std::vector<int> widths(table.header.size(), 0);
  const auto widen = [&widths](const std::vector<std::string>& cells) {
    for (std::size_t i = 0; i < cells.size(); ++i)
      widths[i] = std::max(widths[i], display_width(printable(cells[i])));
  };
  widen(table.header);
  for (const auto& row : table.rows) widen(row);
  const std::string gap(kTableGap, ' ');
  const auto line_of = [&](const std::vector<std::string>& cells, const std::string& tail = "") {
    std::string line;
    for (std::size_t i = 0; i < cells.size(); ++i)
      line += gap + padded(printable(cells[i]), widths[i], is_right_aligned(table, i));
    return without_trailing_blanks(tail.empty() ? line : line + gap + printable(tail));
  };
  TableLines lines;
  lines.titles = line_of(table.header);
  for (const int width : widths) lines.rule += gap + rule(width, unicode);
  for (std::size_t i = 0; i < table.rows.size(); ++i)
    lines.rows.push_back(line_of(table.rows[i], table.tails.empty() ? "" : table.tails[i]));
  return lines;
}

std::string terminal_table(const TextTable& table, bool unicode) {
  const TableLines lines = table_lines(table, unicode);
  std::string text = lines.titles + "\n" + lines.rule + "\n";
  for (const std::string& row : lines.rows) text += row + "\n";
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
