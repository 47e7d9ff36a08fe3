// JSON in the form that the program's files have: numbers that JSON lacks, bytes that are not UTF-8, line
// breaks.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace sweep {

/// JSON for a file: indented, with a line break at the end. Bytes that are not UTF-8 become replacement
/// characters.
std::string json_text(const nlohmann::ordered_json& json);
/// The same on one line, without a line break.
std::string compact_json_text(const nlohmann::ordered_json& json);

/// A number, or "NaN", "Infinity" or "-Infinity", which JSON has no numbers for.
nlohmann::ordered_json json_number(double value);
/// The same; null for a missing value.
nlohmann::ordered_json json_number(const std::optional<double>& value);

/// The inverse; nothing for anything else.
std::optional<double> number_in_json(const nlohmann::ordered_json& json);
/// The same. Throws DataError for any other text, and nlohmann's error for what is neither.
double number_from_json(const nlohmann::ordered_json& json);
/// The number at `key` of an object; nothing if it is missing or null.
std::optional<double> optional_number(const nlohmann::ordered_json& object, const char* key);

}  // namespace sweep
