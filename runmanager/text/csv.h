// CSV as in RFC 4180, except that lines end in \n.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sweep {

/// One line, with its end. A cell with a separator, a quote, a line break or a space at its ends is quoted.
std::string csv_row(const std::vector<std::string>& cells);

/// The fewest digits that read back as the same double, or "nan", "inf" or "-inf".
std::string csv_number(double value);
/// The same; an empty cell for a missing value.
std::string csv_number(const std::optional<double>& value);

/// Rows of cells, as CsvRows reads them. Throws DataError, naming `where` and the line.
std::vector<std::vector<std::string>> parse_csv_text(std::string_view text, std::string_view where);

}  // namespace sweep
