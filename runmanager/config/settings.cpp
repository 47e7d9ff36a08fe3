#include "runmanager/config/settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>

#include "core/base/error.h"
#include "core/base/suggest.h"
#include "core/engine/device.h"
#include "core/spec/loss.h"
#include "core/spec/optimizer.h"
#include "core/spec/schedule.h"

namespace sweep {
namespace {

constexpr double kMost = 1e9;              // A limit from here on is there to catch slips of the pen.
constexpr std::size_t kLongestName = 100;  // Leaves room for "-2" and for what a file system adds.

// " >= 0 and <= 1"; "" where there is no limit worth a word.
std::string range_text(const Setting& setting) {
  std::string text;
  if (std::isfinite(setting.minimum)) {
    text = fmt::format(" {} {}", setting.exclusive ? ">" : ">=", number_text(setting.minimum));
  }
  if (setting.maximum < kMost) {  // Larger limits only matter to those who exceed them.
    text += fmt::format("{} {} {}", text.empty() ? "" : " and",
                        setting.exclusive ? "<" : "<=", number_text(setting.maximum));
  }
  return text;
}

bool in_range(double value, const Setting& setting) {
  if (!std::isfinite(value)) return false;
  return setting.exclusive ? value > setting.minimum && value < setting.maximum
                           : value >= setting.minimum && value <= setting.maximum;
}

bool is_pair(const JsonNode& node, const Setting& setting, bool integers) {
  return node.is(JsonKind::kArray) && node.elements.size() == 2 &&
         std::all_of(node.elements.begin(), node.elements.end(), [&](const JsonNode& element) {
           return (integers ? element.is(JsonKind::kInteger) : element.is_number()) &&
                  in_range(element.number, setting);
         });
}

// Names that Windows keeps for devices, whatever their extension.
bool is_reserved(std::string name) {
  name = name.substr(0, name.find('.'));
  for (char& c : name) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  if (name == "CON" || name == "PRN" || name == "AUX" || name == "NUL") return true;
  return name.size() == 4 && (name.substr(0, 3) == "COM" || name.substr(0, 3) == "LPT") && name[3] >= '1' &&
         name[3] <= '9';
}

// Why `name` cannot be a directory, or "".
std::string name_fault(const std::string& name) {
  if (name.empty()) return "want at least one character";
  if (name.size() > kLongestName)
    return fmt::format("it has {} bytes, want at most {}", name.size(), kLongestName);
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7F) return "want a name without control characters";
    if (std::string_view("/\\:*?\"<>|").find(c) != std::string_view::npos) {
      return fmt::format("want a directory name without {}", c);
    }
  }
  if (name.front() == '.') return "want a name that does not start with a dot";
  if (name.front() == '-' || name.front() == ' ')
    return fmt::format("want a name that does not start with '{}'", name.front());
  if (name.back() == '.' || name.back() == ' ') return "want a name that does not end with a dot or a space";
  if (is_reserved(name)) return "some systems keep this name for a device, want another one";
  return "";
}

bool check_name(const JsonNode& node, Problems& problems) {
  if (!node.is(JsonKind::kString)) {
    problems.add_value(node, "a string: a directory name");
    return false;
  }
  const std::string fault = name_fault(node.text);
  if (!fault.empty()) problems.add(*node.place, fmt::format("got {}, {}", describe(node), fault));
  return fault.empty();
}

bool check_choice(const JsonNode& node, const Setting& setting, Problems& problems) {
  if (node.is(JsonKind::kString) &&
      std::find(setting.choices.begin(), setting.choices.end(), node.text) != setting.choices.end()) {
    return true;
  }
  problems.add_value(node, allowed_text(setting),
                     node.is(JsonKind::kString) ? nearest_name(node.text, setting.choices) : "");
  return false;
}

bool check_device(const JsonNode& node, const Setting& setting, Problems& problems) {
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
  problems.add_value(node, allowed_text(setting), nearest);
  return false;
}

bool fits(const JsonNode& node, const Setting& setting) {
  switch (setting.kind) {
    case SettingKind::kBoolean:
      return node.is(JsonKind::kBoolean);
    case SettingKind::kInteger:
      return node.is(JsonKind::kInteger) && in_range(node.number, setting);
    case SettingKind::kIntegerPair:
      return (node.is(JsonKind::kInteger) && in_range(node.number, setting)) || is_pair(node, setting, true);
    case SettingKind::kNumber:
      return node.is_number() && in_range(node.number, setting);
    case SettingKind::kNumberPair:
      return is_pair(node, setting, false);
    case SettingKind::kNumberList:
      return node.is(JsonKind::kArray) && !node.elements.empty() &&
             std::all_of(node.elements.begin(), node.elements.end(),
                         [&](const JsonNode& e) { return e.is_number() && in_range(e.number, setting); });
    case SettingKind::kCountOrFraction:
      return (node.is(JsonKind::kInteger) && node.integer >= 0 && node.number <= setting.maximum) ||
             (node.is(JsonKind::kNumber) && node.number >= 0 && node.number < 1);
    case SettingKind::kPath:
      return node.is(JsonKind::kString) && !node.text.empty() && node.text.find('\0') == std::string::npos;
    default:
      return true;
  }
}

}  // namespace

const Setting* find_setting(std::span<const Setting> settings, std::string_view name) {
  const auto found =
      std::find_if(settings.begin(), settings.end(), [&](const Setting& s) { return s.name == name; });
  return found == settings.end() ? nullptr : &*found;
}

std::vector<std::string> setting_names(std::span<const Setting> settings) {
  std::vector<std::string> names;
  for (const Setting& setting : settings) {
    if (setting.name[0] != '$') names.push_back(setting.name);  // "$schema" is for editors.
  }
  return names;
}

std::vector<std::string> type_names(std::span<const NamedType> types) {
  std::vector<std::string> names;
  for (const NamedType& type : types) names.push_back(type.name);
  return names;
}

std::span<const NamedType> types_of(SettingKind kind) {
  if (kind == SettingKind::kOptimizer) return optimizer_types();
  if (kind == SettingKind::kSchedule) return schedule_types();
  if (kind == SettingKind::kLoss) return loss_types();
  return {};
}

std::string allowed_text(const Setting& setting) {
  switch (setting.kind) {
    case SettingKind::kBoolean:
      return "true or false";
    case SettingKind::kInteger:
      return "an integer" + range_text(setting);
    case SettingKind::kIntegerPair:
      return "an integer, or a pair of integers," + range_text(setting);
    case SettingKind::kNumber:
      return "a number" + range_text(setting);
    case SettingKind::kNumberPair:
      return "a pair of numbers" + range_text(setting);
    case SettingKind::kNumberList:
      return "a list of numbers" + range_text(setting) + ", one per channel";
    case SettingKind::kCountOrFraction:
      return "a count (an integer >= 0) or a fraction (a number >= 0 and < 1)";
    case SettingKind::kChoice:
    case SettingKind::kOptimizer:
    case SettingKind::kSchedule:
    case SettingKind::kLoss:
      return listed(setting.choices);
    case SettingKind::kDevice:
      return "cpu, cuda, cuda:N, cpu:N (N is a device number from 0) or auto";
    case SettingKind::kName:
      return "a directory name";
    case SettingKind::kPath:
      return "a path";
    default:
      return "an object";
  }
}

bool check_value(const JsonNode& node, const Setting& setting, Problems& problems) {
  if (setting.kind == SettingKind::kName) return check_name(node, problems);
  const bool named = !types_of(setting.kind).empty() && node.is(JsonKind::kString);
  if (setting.kind == SettingKind::kChoice || named) return check_choice(node, setting, problems);
  if (setting.kind == SettingKind::kDevice) return check_device(node, setting, problems);
  if (fits(node, setting)) return true;
  std::string allowed = allowed_text(setting);
  if (node.is_number() && node.number > setting.maximum && setting.maximum >= kMost) {
    allowed += " and <= " + number_text(setting.maximum);
  }
  const bool pair = setting.kind == SettingKind::kIntegerPair || setting.kind == SettingKind::kNumberPair ||
                    setting.kind == SettingKind::kNumberList;
  if (node.is(JsonKind::kArray) && !pair && setting.sweepable)
    allowed += "; a list of values to try stands in \"params\"";
  if (setting.kind == SettingKind::kBoolean && node.is(JsonKind::kString)) {
    const std::string words[] = {"true", "false"};
    problems.add(*node.place, fmt::format("got {}, want {} without quotes{}", describe(node), allowed,
                                          suggestion(node.text, words)));
    return false;
  }
  problems.add_value(node, allowed);
  return false;
}

void check_keys(const JsonNode& object, std::span<const Setting> settings, Problems& problems) {
  for (const JsonMember& member : object.members) {
    if (find_setting(settings, member.key) == nullptr)
      problems.add_unknown_key(member, setting_names(settings));
  }
}

JsonNode SettingReader::value(std::string_view name) const {
  const Setting& setting = *find_setting(settings_, name);
  const JsonNode* node = object_ == nullptr ? nullptr : object_->find(name);
  if (node != nullptr && check_value(*node, setting, problems_)) return *node;
  return from_json(setting.default_value, nullptr);
}

}  // namespace sweep
