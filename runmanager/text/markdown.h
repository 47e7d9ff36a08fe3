// Markdown tables for TensorBoard's Text tab.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace sweep {

/// Escapes `text` so that Markdown and HTML show it unchanged, on one line.
std::string markdown_text(std::string_view text);

/// Every cell is escaped; rows shorter than the header get empty cells.
std::string markdown_table(const std::vector<std::string>& header,
                           const std::vector<std::vector<std::string>>& rows);

/// A table of keys and values. Nested objects get dotted keys. An array of objects gets a row per element,
/// any other array one row.
std::string markdown_table(const nlohmann::ordered_json& object);

}  // namespace sweep
