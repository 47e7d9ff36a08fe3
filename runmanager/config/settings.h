// The keys of a sweep file in tables: names, types, limits, defaults and help. Checks, defaults and the
// schema all come from here.
#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/spec/arguments.h"
#include "runmanager/config/json_document.h"
#include "runmanager/config/problems.h"

namespace sweep {

enum class SettingKind {
  kBoolean,
  kInteger,
  kIntegerPair,  // an integer for both, or [height, width]
  kNumber,
  kNumberPair,
  kNumberList,       // one number per channel
  kCountOrFraction,  // an integer >= 0, or a number in [0, 1)
  kChoice,           // one of `choices`
  kDevice,           // cpu, cuda, cuda:N, cpu:N, auto
  kName,             // a directory name that is safe on every file system
  kPath,             // text without NUL
  // Objects and lists with readers of their own.
  kDataset,
  kNetwork,
  kOptimizer,  // one of `choices`, or an object with that name and arguments
  kSchedule,   // the same
  kLoss,       // the same
  kLog,
  kAxes,
  kZip,
  kExclude,
  kWhen,
  kGrids,
  kAnything,
};

struct Setting {
  std::string name;
  SettingKind kind = SettingKind::kAnything;
  double minimum = 0;
  double maximum = kUnbounded;
  bool exclusive = false;                  // the limits themselves are not allowed
  std::vector<std::string> choices{};      // of kChoice, kOptimizer, kSchedule and kLoss
  nlohmann::ordered_json default_value{};  // null: none
  std::string help{};                      // one line
  bool sweepable = true;                   // may be an axis
};

/// Keys of the sweep file itself, in the order in which people write them.
std::span<const Setting> file_settings();
/// Keys of "dataset" when it is an object.
std::span<const Setting> dataset_settings();
/// Keys of "log".
std::span<const Setting> log_settings();
/// The same for an argument of a layer or optimizer.
Setting to_setting(const ArgumentType& type);

/// Names of data sets that are found without a path.
std::span<const std::string> dataset_names();

const Setting* find_setting(std::span<const Setting> settings, std::string_view name);
std::vector<std::string> setting_names(std::span<const Setting> settings);
std::vector<std::string> type_names(std::span<const NamedType> types);

/// The types that a setting of kind kOptimizer, kSchedule or kLoss names; empty for others.
std::span<const NamedType> types_of(SettingKind kind);

/// What the value may be, for messages: "an integer >= 1".
std::string allowed_text(const Setting& setting);

/// Checks type and limits of a simple value (kBoolean … kPath). Returns whether it is good; if not, a problem
/// was added.
bool check_value(const JsonNode& node, const Setting& setting, Problems& problems);

/// Reports members of `object` that `settings` does not have.
void check_keys(const JsonNode& object, std::span<const Setting> settings, Problems& problems);

/// `node` checked against setting `name` of the table, or the table's default: what check_value() accepts.
class SettingReader {
 public:
  /// `object` may be nullptr: then everything is default. Refers to all three; keep them alive.
  SettingReader(const JsonNode* object, std::span<const Setting> settings, Problems& problems)
      : object_(object), settings_(settings), problems_(problems) {}

  bool given(std::string_view name) const { return object_ != nullptr && object_->find(name) != nullptr; }
  /// The given value if it is good, else the default. Never null for a setting that has a default.
  JsonNode value(std::string_view name) const;
  bool boolean(std::string_view name) const { return value(name).boolean; }
  std::int64_t integer(std::string_view name) const { return value(name).integer; }
  double number(std::string_view name) const { return value(name).number; }
  std::string text(std::string_view name) const { return value(name).text; }

 private:
  const JsonNode* object_;
  std::span<const Setting> settings_;
  Problems& problems_;
};

}  // namespace sweep
