// The keys of a sweep file in tables: names, types, limits, defaults and help. Checks, defaults, the schema
// and --help all come from here.
//
// To add a key: a row in file_settings.cpp, a field in run_config.h, and its row in run_parts() of
// config_reader.cpp.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/spec/arguments.h"
#include "runmanager/config/problems.h"
#include "runmanager/text/json_document.h"

namespace sweep {

struct Setting;

/// The form of a value that an ArgumentType does not describe: text with rules of its own, an object or a
/// list.
struct SettingFormat {
  std::string allowed{};            // for messages: "a directory name"; empty: as ArgumentType says
  nlohmann::ordered_json schema{};  // of the value, without help and default; null: anything
  /// Checks a value, adds a problem if it is bad, and returns whether it is good. nullptr: a reader of its
  /// own checks it later.
  bool (*check)(const JsonNode& node, Problems& problems) = nullptr;
  bool has_parts = false;   // dotted keys such as "log.images" reach into the object
  bool short_form = false;  // a string stands for an object with that "name"
  /// Keys of the object; nullptr: they are not those of a table.
  std::span<const Setting> (*settings)() = nullptr;
  /// Types whose name the string, or the object's "name", is, with their arguments beside it; nullptr: none.
  std::span<const NamedType> (*types)() = nullptr;
  std::string default_type{};  // of `types`: what is used where no name is given
};

/// One key. Without a format its value is simple, and the ArgumentType describes it like an argument of a
/// layer. With a format, `kind` only says what the value is closest to.
struct Setting : ArgumentType {
  std::optional<SettingFormat> format{};
  bool sweepable = true;  // may be an axis
};

/// Keys of the sweep file itself, in the order in which people write them.
std::span<const Setting> file_settings();
/// Keys of a sweep file with a "command", whose parameters are the program's.
std::span<const Setting> command_settings();
/// Keys of its "search" and "stop", whose metrics are the program's.
std::span<const Setting> command_search_settings();
std::span<const Setting> command_stop_settings();
/// Keys of its "timeout".
std::span<const Setting> timeout_settings();
/// Whether `root`, a sweep file, has a "command", and the table of its keys.
bool is_command_file(const JsonNode& root);
std::span<const Setting> settings_of(const JsonNode& root);
/// Keys of "dataset" when it is an object.
std::span<const Setting> dataset_settings();
/// Keys of the dataset's "normalize".
std::span<const Setting> normalize_settings();
/// Keys of "stop".
std::span<const Setting> stop_settings();
/// Keys of "search".
std::span<const Setting> search_settings();
/// Keys of "parallel".
std::span<const Setting> parallel_settings();
/// Keys of "parallel.pipeline".
std::span<const Setting> pipeline_settings();
/// Keys of "log".
std::span<const Setting> log_settings();

/// Names of data sets that are found without a path.
std::span<const std::string> dataset_names();

/// Returns the setting called `name`, or nullptr.
const Setting* find_setting(std::span<const Setting> settings, std::string_view name);
/// Names in order, without those for editors ("$schema").
std::vector<std::string> setting_names(std::span<const Setting> settings);
std::vector<std::string> type_names(std::span<const NamedType> types);

/// Whether the value may be a list: a pair, numbers, names of columns, changes of images.
bool takes_list(const Setting& setting);

/// Types that the setting's value names, as "optimizer" does; empty for other settings.
std::span<const NamedType> named_types(const Setting& setting);

/// Returns what the value may be, for messages: "an integer >= 1".
std::string allowed_text(const Setting& setting);

/// Returns the node's value: two integers in brackets as a pair, other numbers in brackets as a list. Returns
/// nothing for null, objects, and lists of anything but numbers.
std::optional<ArgumentValue> argument_value(const JsonNode& node);

/// Checks the value of an argument; returns it as checked_value() does. Adds a problem, and returns nothing,
/// if it is not allowed.
std::optional<ArgumentValue> read_value(const JsonNode& node, const ArgumentType& type, Problems& problems);

/// Checks the value of a key as far as its table says. Returns whether it is good; if not, a problem was
/// added.
bool check_value(const JsonNode& node, const Setting& setting, Problems& problems);

/// Reports members of `object` that `settings` does not have.
void check_keys(const JsonNode& object, std::span<const Setting> settings, Problems& problems);

/// Reads the settings of one object: checks each against its row of the table, and falls back to the row's
/// default. Names must be those of rows.
class SettingReader {
 public:
  /// `object` may be nullptr: then everything is default. Refers to all three; keep them alive.
  SettingReader(const JsonNode* object, std::span<const Setting> settings, Problems& problems)
      : object_(object), settings_(settings), problems_(problems) {}

  /// Whether there is a value, good or bad.
  bool given(std::string_view name) const { return object_ != nullptr && object_->find(name) != nullptr; }
  /// The given value if it is good, else nullptr.
  const JsonNode* find(std::string_view name) const;
  /// The given value if it is good, else the default, which the row must have.
  ArgumentValue value(std::string_view name) const;
  bool boolean(std::string_view name) const { return std::get<bool>(value(name)); }
  std::int64_t integer(std::string_view name) const { return std::get<std::int64_t>(value(name)); }
  double number(std::string_view name) const { return std::get<double>(value(name)); }
  std::string text(std::string_view name) const { return std::get<std::string>(value(name)); }

 private:
  const JsonNode* object_;
  std::span<const Setting> settings_;
  Problems& problems_;
};

}  // namespace sweep
