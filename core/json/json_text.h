// Reads JSON that this program or another one has written to a file, and looks into it. Sweep files have
// their own reader, because messages about them name lines.
//
// Nothing in a file is trusted: deep nesting would overflow the stack where a value is copied, printed or
// destroyed, and nlohmann::json takes the last of several equal keys and ends at a NUL byte.
#pragma once

#include <cstddef>
#include <exception>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace sweep {

/// Far beyond anything that is written, far below what overflows a stack.
inline constexpr std::size_t kMaxJsonDepth = 64;

/// What an exception of nlohmann::json says, without its "[json.exception.type_error.302] ".
std::string json_reason(const std::exception& error);

/// Parses one JSON document in linear time. `subject` begins every message, "FILE: the header". Throws
/// DataError unless the text is valid, without equal keys in an object, without NUL bytes, and at most
/// `max_depth` levels deep. Thread-safe.
nlohmann::ordered_json parse_json_text(std::string_view text, const std::string& subject,
                                       std::size_t max_depth = kMaxJsonDepth);

/// The same for a file, which messages name. Files above 1 GiB are refused.
nlohmann::ordered_json read_json_file(const std::filesystem::path& path);

/// The value at `path`, keys of objects joined by dots ("optimizer.momentum"), or nullptr if there is none.
/// Points into `root`. Thread-safe.
const nlohmann::ordered_json* find_at(const nlohmann::ordered_json& root, std::string_view path);

}  // namespace sweep
