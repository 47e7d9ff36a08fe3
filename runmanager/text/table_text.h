// Tables as text: CSV, and Markdown for TensorBoard's Text tab.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sweep {

/// One line of CSV as in RFC 4180, except that it ends in \n. A cell with a separator, a quote, a line break
/// or a space at its ends is quoted.
std::string csv_row(const std::vector<std::string>& cells);

/// The fewest digits that read back as the same double, or "nan", "inf" or "-inf".
std::string csv_number(double value);
/// The same; an empty cell for a missing value.
std::string csv_number(const std::optional<double>& value);

/// Rows of cells, as CsvRows reads them. Throws DataError, naming `where` and the line.
std::vector<std::vector<std::string>> parse_csv_text(std::string_view text, std::string_view where);

/// Escapes `text` so that Markdown and HTML show it unchanged, on one line.
std::string markdown_text(std::string_view text);

/// Every cell is escaped; rows shorter than the header get empty cells.
std::string markdown_table(const std::vector<std::string>& header,
                           const std::vector<std::vector<std::string>>& rows);

/// A table of keys and values. Nested objects get dotted keys. An array of objects gets a row per element,
/// any other array one row.
std::string markdown_table(const nlohmann::ordered_json& object);

}  // namespace sweep
