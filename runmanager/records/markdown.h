// Markdown tables for TensorBoard's Text tab.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace sweep {

/// Text that Markdown and HTML show as it is, in one line: special characters are escaped.
std::string markdown_text(std::string_view text);

/// Every cell is escaped; rows shorter than the header get empty cells.
std::string markdown_table(const std::vector<std::string>& header,
                           const std::vector<std::vector<std::string>>& rows);

/// A table of key and value. Objects inside objects have dotted keys; an array is one cell per element if it
/// holds objects, else one cell.
std::string markdown_table(const nlohmann::ordered_json& object);

}  // namespace sweep
