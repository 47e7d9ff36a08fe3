#include "runmanager/sweepfile/text_rules.h"

#include <fmt/format.h>

#include <cctype>
#include <string>
#include <string_view>

#include "core/base/error.h"
#include "core/base/printable.h"
#include "core/base/suggest.h"
#include "core/engine/device.h"

namespace sweep {
namespace {

// Whether Windows keeps the name for a device, whatever its extension.
bool is_reserved(std::string name) {
  name = name.substr(0, name.find('.'));
  for (char& c : name) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  if (name == "CON" || name == "PRN" || name == "AUX" || name == "NUL") return true;
  return name.size() == 4 && (name.substr(0, 3) == "COM" || name.substr(0, 3) == "LPT") && name[3] >= '1' &&
         name[3] <= '9';
}

// Returns why `name` cannot be a directory, or "".
std::string name_error(const std::string& name) {
  if (name.empty()) return "want at least one character";
  if (name.size() > kMaxNameLength)
    return fmt::format("it has {} bytes, want at most {}", name.size(), kMaxNameLength);
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20) return "want a name without control characters";
    if (std::string_view("/\\:*?\"<>|").find(c) != std::string_view::npos) {
      return fmt::format("want a directory name without {}", c);
    }
  }
  if (printable(name) != name)
    return "want a name without control characters, marks of writing direction and characters without a "
           "width";
  if (name.front() == '.') return "want a name that does not start with a dot";
  if (name.front() == '-' || name.front() == ' ')
    return fmt::format("want a name that does not start with '{}'", name.front());
  if (name.back() == '.' || name.back() == ' ') return "want a name that does not end with a dot or a space";
  if (name.ends_with(".mean"))
    return "want a name that does not end with .mean: the means of repeats are in such directories";
  if (is_reserved(name)) return "some systems keep this name for a device, want another one";
  return "";
}

}  // namespace

bool check_directory_name(const JsonNode& node, Problems& problems) {
  if (!node.is(JsonKind::kString)) {
    problems.add_value(node, "a string: a directory name");
    return false;
  }
  const std::string error = name_error(node.text);
  if (!error.empty()) problems.add(*node.location, fmt::format("got {}, {}", describe(node), error));
  return error.empty();
}

bool check_column_name(const JsonNode& node, Problems& problems) {
  if (node.is(JsonKind::kString) && !node.text.empty()) return true;
  problems.add_value(node, "the name of a column or an array");
  return false;
}

bool check_column_names(const JsonNode& node, Problems& problems) {
  if (!node.is(JsonKind::kArray)) return check_column_name(node, problems);
  if (node.elements.empty()) problems.add_value(node, "the name of a column, or a list of such names");
  bool good = !node.elements.empty();
  for (const JsonNode& name : node.elements) good = check_column_name(name, problems) && good;
  return good;
}

bool check_ignored_columns(const JsonNode& node, Problems& problems) {
  const auto check = [&](const JsonNode& name) {
    const bool is_unnamed = name.is(JsonKind::kString) && name.text.empty();
    return is_unnamed || check_column_name(name, problems);
  };
  if (!node.is(JsonKind::kArray)) return check(node);
  if (node.elements.empty()) problems.add_value(node, "the name of a column, or a list of such names");
  bool good = !node.elements.empty();
  for (const JsonNode& name : node.elements) good = check(name) && good;
  return good;
}

bool check_device_name(const JsonNode& node, Problems& problems) {
  std::string nearest;
  if (node.is(JsonKind::kString)) {
    try {
      parse_device(node.text);
      return true;
    } catch (const ConfigError&) {
      const std::string names[] = {"cpu", "cuda", "auto"};
      nearest = node.text == "gpu" ? "cuda" : nearest_name(node.text.substr(0, node.text.find(':')), names);
    }
  }
  problems.add_value(node, kAllowedDevices, nearest);
  return false;
}

bool check_image_count(const JsonNode& node, Problems& problems) {
  if (node.is(JsonKind::kBoolean)) return true;
  if (node.is(JsonKind::kInteger) && node.integer >= 0 && node.integer <= kMaxLoggedImages) return true;
  problems.add_value(node, fmt::format("an integer >= 0 and <= {}, true or false", kMaxLoggedImages));
  return false;
}

}  // namespace sweep
