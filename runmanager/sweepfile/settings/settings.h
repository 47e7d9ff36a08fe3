// The keys of a sweep file in tables: names, types, limits, defaults and help. Checks, defaults, the schema
// and --help all come from here.
//
// To add a key: a row in the *_settings.cpp of its object. If a run's training depends on it, also a field
// in run_config.h and its line in run_config.cpp.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/network/arguments.h"
#include "runmanager/text/json_document.h"

namespace sweep {

struct Setting;

/// What the checks need to know besides the file.
struct ReadContext {
  std::filesystem::path data_directory;  // $SWEEP_DATA: data sets in it are also known by name; may be empty
  int cuda_device_count = 0;
};

/// What is given for a key; its value is completed from it.
struct Given {
  JsonView value;                        // may be nothing
  JsonView object;                       // that the key is one of; may be nothing
  const nlohmann::ordered_json& before;  // of the object: the keys of earlier rows, complete
  const ReadContext& context;
  Problems& problems;
};

/// What kind of value a key has.
enum class SettingShape {
  kSimple,  // what ArgumentType says
  kObject,  // keys of another table
  kNamed,   // a type by its name, or an object with that name and the type's arguments
  kList,    // values that follow one row
  kMap,     // the same, by keys of any name
  kOwn,     // what the row's `schema` and its `check` or `complete` say
};

struct Elements;

/// What a key changes.
enum class Changes {
  kNumbers,  // the numbers that a training gives: it is a part of the run's identity
  kTimes,    // only how long a run takes, or what is shown of it
  kApart     // what it names is compared instead: a device, epochs, the content of files
};

/// One key. Checks, defaults, the schema, help and completion follow from its row, which
/// one of the functions in rows makes. If a key is not simple, `kind` is only the nearest kind of its value.
struct Setting : ArgumentType {
  SettingShape shape = SettingShape::kSimple;
  std::string allowed{};  // for messages: "a directory name"; empty: as ArgumentType says
  /// kOwn: without help and default; null: anything. kObject: what may be there instead, such as one of the
  /// words of an "enum"; null: nothing.
  nlohmann::ordered_json schema{};
  std::string definition{};                            // of kObject and kNamed: its name in the schema
  std::shared_ptr<const std::vector<Setting>> keys{};  // of kObject; of kNamed the arguments of all types
  std::string short_key{};  // of kObject and kNamed: a value alone represents an object with this key
  std::span<const NamedType> types{};    // of kNamed; the first one is used if no name is given
  std::shared_ptr<Elements> elements{};  // of kList and kMap
  bool has_parts = false;                // dotted keys such as "log.images" reach into the object
  bool sweepable = true;                 // may be an axis
  bool is_shown = true;                  // help, messages and completion name it
  bool only_if_given = false;            // of kObject: without it there is none, not one of defaults
  bool default_is_recorded = true;  // false: earlier versions did not have the key; their runs stay the same
  Changes changes = Changes::kNumbers;
  /// For kOwn: returns whether the value is good; if not, adds a problem. Empty: `complete` does.
  std::function<bool(const JsonView& node, Problems& problems)> check{};
  /// Checks what is given and returns it complete, in its one spelling; null: the key is not recorded.
  /// nullptr: complete_plain(), which does what the rest of the row says.
  using Complete = nlohmann::ordered_json (*)(const Setting& row, const Given& given);
  Complete complete = nullptr;

  std::span<const Setting> table() const { return keys ? *keys : std::span<const Setting>(); }

  // The row with something else about it.
  Setting unless_default() && { return with(&Setting::default_is_recorded, false); }
  Setting of_times() && { return with(&Setting::changes, Changes::kTimes); }
  Setting compared_apart() && { return with(&Setting::changes, Changes::kApart); }
  Setting completed_by(Complete function) && { return with(&Setting::complete, function); }
  Setting hidden() && { return with(&Setting::is_shown, false); }
  Setting if_given() && { return with(&Setting::only_if_given, true); }
  Setting not_swept() && { return with(&Setting::sweepable, false); }

 private:
  template <typename Value>
  Setting with(Value Setting::*member, Value value) {
    this->*member = value;
    return std::move(*this);
  }
};

/// How many values a list or a map has.
struct Counts {
  std::size_t minimum = 0, maximum = std::numeric_limits<std::size_t>::max();
};

/// The values of a list or a map.
struct Elements {
  Setting item;
  Counts counts;
  std::optional<Setting> alone{};  // a value that may replace the list
  bool is_wrapped = false;         // the value alone becomes a list of one
};

/// Keys of the sweep file itself, in the order in which people write them.
std::span<const Setting> top_level_settings();
/// Keys of a sweep file with a "command", whose parameters are the program's.
std::span<const Setting> command_settings();
/// Whether `root`, a sweep file, has a "command", and the table of its keys.
bool is_command_file(const JsonView& root);
std::span<const Setting> settings_of(const JsonView& root);
/// Completes a network: the object itself, without its place in a sweep file. Reports every mistake.
nlohmann::ordered_json complete_network(const JsonView& node, Problems& problems);

/// Returns the setting called `name`, or nullptr.
const Setting* find_setting(std::span<const Setting> settings, std::string_view name);

/// The row for a part of a key with parts: "images" of "log", "momentum" of "optimizer", "stages" of
/// "parallel"'s "pipeline", any of "metrics". Nothing if there is none.
std::optional<Setting> part_setting(const Setting& whole, std::span<const std::string> parts);

/// The keys at the top of a network's file that have a part of this name: "optimizer" for "momentum".
std::vector<std::string> wholes_of(const std::string& key);

/// Whether the value may be a list: a pair, numbers, names of columns, changes of images.
bool takes_list(const Setting& setting);

/// The value if nothing is given; null if there is no default.
nlohmann::ordered_json default_of(const ArgumentType& setting);

/// What ends the message about a wrong value that looks like those of an axis.
std::string hint_of_values(const JsonView& node);

/// Returns what the value may be, for messages: "an integer >= 1".
std::string allowed_text(const Setting& setting);

/// Checks the value of a key as far as its table says. Returns whether it is good; if not, a problem was
/// added.
bool check_value(const JsonView& node, const Setting& setting, Problems& problems);

/// Reports members of `object` that `settings` does not have.
void check_keys(const JsonView& object, std::span<const Setting> settings, Problems& problems);

/// complete_value() of a row without `complete`.
nlohmann::ordered_json complete_plain(const Setting& setting, const Given& given);

/// Returns the value of a key: what is given in its one spelling, else its default; null if it has none or is
/// not recorded. Reports every mistake.
nlohmann::ordered_json complete_value(const Setting& setting, const Given& given);

/// Returns every key of an object that is recorded, in the order of `settings`. Reports every mistake, also
/// unknown keys. `object` may be nothing: then everything is default.
nlohmann::ordered_json complete_object(const JsonView& object, std::span<const Setting> settings,
                                       const ReadContext& context, Problems& problems);

/// Adds to `json` the arguments of a layer or optimizer that are members of `object`, except those in
/// `reserved_keys`, and the defaults of the others, in the order of `type`. Reports every mistake.
void complete_arguments(const JsonView& object, const NamedType& type,
                        std::span<const std::string> reserved_keys, nlohmann::ordered_json& json,
                        Problems& problems);

/// Returns one of `types`, given by its name or as an object with that name and arguments; without a name the
/// arguments are those of the first one, as they are if nothing is given. Null, and a problem, if it is
/// wrong.
nlohmann::ordered_json complete_named(const JsonView& node, std::span<const NamedType> types,
                                      std::span<const std::string> reserved_keys, Problems& problems);

/// The kinds of rows that the tables are made of.
namespace rows {

inline constexpr double kMaxExactInteger =
    9007199254740992.0;                          // 2^53: doubles hold every integer up to here.
inline constexpr double kMaxImageExtent = 8192;  // pixels
inline constexpr double kMaxCount = 1e9;         // Catches typing errors in epochs, repeats or samples.

/// A key with an integer in [minimum, maximum].
Setting integer(std::string name, double minimum, double maximum, std::int64_t value, std::string help);
/// A key with a number >= 0, or > 0 if it is `positive`. Without `value` it has no default.
Setting number(std::string name, std::optional<ArgumentValue> value, bool positive, std::string help);
Setting boolean(std::string name, bool value, std::string help);
/// A key whose value is one of `choices`. Without `value` it has no default.
Setting choice(std::string name, std::vector<std::string> choices, std::optional<std::string> value,
               std::string help);
Setting path(std::string name, std::string help);
/// A metric of a person's own program.
Setting metric_name(std::string name, std::string help);
/// Numbers per channel, each >= `minimum`, or > it if they are `positive`.
Setting channels(std::string name, double minimum, bool positive);
Setting count_or_fraction(std::string name, std::string help);
Setting directory_name(std::string name, std::string help);
/// Patterns of texts: any, or one with a character at least.
inline constexpr const char *kAnyText = "", *kNotEmpty = ".";

/// A rule for texts, which may read like numbers.
struct TextRule {
  const char* allowed;  // for messages
  bool (*is_good)(const std::string& text);
  const char* pattern;  // for the schema, as far as one goes
};

/// A text that follows `rule`, which has to live as long as the program.
Setting text(std::string name, const TextRule& rule, std::string help);
Setting device(std::string name, std::string value, std::string help);
Setting image_count(std::string name, std::int64_t value, std::string help);
/// A list, or an object of keys of any name. `allowed`: for messages about what is neither, or of another
/// length. `item` needs no name.
Setting list(std::string name, std::string allowed, Setting item, Counts counts, std::string help);
Setting map(std::string name, std::string allowed, Setting item, Counts counts, std::string help);
/// The list, or a value alone in its place, which becomes a list of one if it `is_wrapped`.
Setting or_alone(Setting list, Setting alone, bool is_wrapped = true);
/// An object with these keys. Its schema is called `name`.
Setting object(const std::string& name, std::string help, std::vector<Setting> keys);
/// A type by its name, the first one by default, or an object with that name and the type's arguments. Its
/// schema is called `name`.
Setting named(const std::string& name, std::span<const NamedType> types, std::string help);
/// The objects of a sweep file; `is_of_program`: of one with a "command", whose metrics are the program's.
Setting dataset();
Setting network();
Setting parallel();
Setting stop(bool is_of_program);
Setting search(bool is_of_program);
Setting log();
Setting slurm();
/// A key that its own code reads. `schema` as Setting has it.
Setting custom(std::string name, nlohmann::ordered_json schema, std::string help);

/// The schema of a list of `items`, and of an object with nothing but `properties`.
nlohmann::ordered_json list_of(nlohmann::ordered_json items, Counts counts = {});
nlohmann::ordered_json object_with(nlohmann::ordered_json properties, std::vector<std::string> required = {});
/// The schema that is called `name` in the file's.
nlohmann::ordered_json definition(const std::string& name);

}  // namespace rows

}  // namespace sweep
