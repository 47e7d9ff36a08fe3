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

/// Always names a parameter, whatever else has the name after it: "param.loss".
inline constexpr std::string_view kParamPrefix = "param.";
/// The title of a parameter's column in a table that also has the columns `others`: its key, with
/// kParamPrefix if one of them has that name.
std::string param_title(const std::string& key, const std::vector<std::string>& others);

/// Rows of cells. Lines may also end in \r\n, and the last line may have no end. Throws DataError, naming
/// `where` and the row, for a quote that is not closed or is in the middle of a cell.
std::vector<std::vector<std::string>> parse_csv_text(std::string_view text, std::string_view where);

}  // namespace sweep
