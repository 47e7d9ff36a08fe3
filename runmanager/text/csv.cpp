#include "runmanager/text/csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/error.h"

namespace sweep {
namespace {

// Cells with leading or trailing spaces are also quoted, because some readers strip them.
std::string csv_field(const std::string& text) {
  const bool plain = text.find_first_of(",\"\r\n") == std::string::npos &&
                     (text.empty() || (text.front() != ' ' && text.back() != ' '));
  if (plain) return text;
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + '"';
}

class CsvParser {
 public:
  CsvParser(std::string_view text, std::string_view where) : text_(text), where_(where) {}

  std::vector<std::vector<std::string>> parse() {
    std::vector<std::vector<std::string>> rows;
    while (at_ < text_.size()) rows.push_back(row());
    return rows;
  }

 private:
  bool at(char c) const { return at_ < text_.size() && text_[at_] == c; }

  std::vector<std::string> row() {
    ++line_;
    std::vector<std::string> cells = {cell()};
    while (at(',')) {
      ++at_;
      cells.push_back(cell());
    }
    if (at('\r')) ++at_;
    if (at('\n')) {
      ++at_;
    } else if (at_ < text_.size()) {
      fail("text after a closing quote");
    }
    return cells;
  }

  std::string cell() {
    if (at('"')) return quoted_cell();
    const std::size_t end = std::min(text_.find_first_of(",\r\n\"", at_), text_.size());
    std::string cell(text_.substr(at_, end - at_));
    at_ = end;
    if (at('"')) fail("a quote within a cell");
    return cell;
  }

  std::string quoted_cell() {
    std::string cell;
    for (++at_; at_ < text_.size(); ++at_) {
      if (!at('"')) {
        cell += text_[at_];
      } else if (at_ + 1 < text_.size() && text_[at_ + 1] == '"') {
        cell += text_[++at_];
      } else {
        ++at_;
        return cell;
      }
    }
    fail("a quote that is not closed");
  }

  [[noreturn]] void fail(std::string_view what) const {
    throw DataError(fmt::format("{}: row {} has {}", where_, line_, what));
  }

  std::string_view text_, where_;
  std::size_t at_ = 0, line_ = 0;
};

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
  return CsvParser(text, where).parse();
}

}  // namespace sweep
