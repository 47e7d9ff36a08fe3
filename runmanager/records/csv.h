// CSV as RFC 4180 has it, except that lines end in \n.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sweep {

/// One line, with its end. A cell with a separator, a quote, a line break or a space at its ends is quoted.
std::string csv_row(const std::vector<std::string>& cells);

/// The fewest digits that read back to the same double; "nan", "inf" and "-inf" stand for themselves.
std::string csv_number(double value);
/// The same, or an empty cell.
std::string csv_number(const std::optional<double>& value);

/// Rows of cells; lines may end in \r\n, too, and the last one may have no end. Throws DataError, naming
/// `where` and the row, for a quote that is not closed or stands where none may.
std::vector<std::vector<std::string>> parse_csv_text(std::string_view text, std::string_view where);

}  // namespace sweep
