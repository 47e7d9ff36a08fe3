#include "runmanager/records/run_identity.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <span>
#include <string_view>

#include "runmanager/config/search_spec.h"
#include "runmanager/records/results.h"
#include "runmanager/sweepfile/key_path.h"
#include "runmanager/sweepfile/settings/settings.h"

namespace sweep {
namespace {

using Json = nlohmann::ordered_json;

// Those of `object` that change the numbers of a training.
Json numbers_of(const Json& object, std::span<const Setting> keys) {
  Json settings = Json::object();
  for (const auto& [key, value] : object.items()) {
    const Setting* setting = find_setting(keys, key);
    if (setting == nullptr || setting->changes == Changes::kNumbers) settings[key] = value;
  }
  return settings;
}

// One text for 1 and 1.0: a file may spell a number either way. Integers that no double holds stay exact.
std::string value_text(const Json& value) {
  return value.is_number_float() ? fmt::format("{}", value.get<double>()) : value.dump();
}

void flatten(const Json& value, const std::string& key,
             std::vector<std::pair<std::string, std::string>>& settings) {
  if (value.is_object()) {
    for (const auto& [name, member] : value.items())
      flatten(member, key.empty() ? name : key + "." + name, settings);
  } else if (value.is_array()) {
    for (std::size_t i = 0; i < value.size(); ++i) flatten(value[i], fmt::format("{}[{}]", key, i), settings);
    // Without its length, a list would equal a longer one that begins with it only by the missing keys; an
    // empty one needs an entry to be seen at all.
    if (value.empty()) settings.emplace_back(key, "[]");
  } else {
    settings.emplace_back(key, value_text(value));
  }
}

// Moves the names of `layers`, and of those inside them, to `names`: they change no number.
void take_names(Json& layers, const std::string& prefix, std::vector<std::string>& names) {
  if (!layers.is_array()) return;
  for (Json& layer : layers) {
    if (!layer.is_object()) continue;
    const Json name = layer.value("name", Json(""));
    const std::string path = prefix + (name.is_string() ? name.get<std::string>() : "");
    names.push_back(path);
    layer.erase("name");
    // Earlier versions left it out of the record of a pool whose file did.
    if (layer.contains("kernel_size") && !layer.contains("stride")) layer["stride"] = layer["kernel_size"];
    for (const char* inner : {"layers", "shortcut"}) {
      if (layer.contains(inner)) take_names(layer[inner], path + ".", names);
    }
  }
}

std::optional<RunIdentity::Files> data_files(const Json& provenance) {
  if (!provenance.is_object()) return std::nullopt;
  const Json dataset = provenance.contains("inputs") ? Json{{"files", provenance["inputs"]}}
                                                     : provenance.value("dataset", Json());
  if (!dataset.is_object() || !dataset.contains("files") || !dataset["files"].is_array()) return std::nullopt;
  RunIdentity::Files files;
  for (const Json& file : dataset["files"]) {
    if (!file.is_object() || !file.contains("sha256")) return std::nullopt;
    const Json path = file.value("path", Json(""));
    const std::filesystem::path name = path.is_string() ? path.get<std::string>() : "";
    files.emplace_back(name.filename().string(), file["sha256"].dump());
  }
  return files.empty() ? std::nullopt : std::optional(std::move(files));
}

// "b.txt 4355a46b…": those of `files` that `others` has not.
std::string changed_files(const RunIdentity::Files& files, const RunIdentity::Files& others) {
  constexpr std::size_t kMaxFiles = 3, kShownDigits = 8;
  const std::set known(others.begin(), others.end());
  std::string text;
  std::size_t count = 0;
  for (const auto& file : files) {
    if (known.contains(file) || ++count > kMaxFiles) continue;
    text += fmt::format("{}{} {}…", text.empty() ? "" : ", ", file.first,
                        file.second.substr(1, kShownDigits));  // after its quote
  }
  if (count > kMaxFiles) text += fmt::format(" and {} more", count - kMaxFiles);
  return text.empty() ? "nothing else" : text;
}

// one_cycle, and a cosine without a length of its own, also behind a warmup; "" of others.
std::string spanning_schedule(const Json& schedule) {
  if (!schedule.is_object()) return "";
  const Json name = schedule.value("name", Json());
  if (name == "one_cycle") return "one_cycle";
  if (name == "cosine") return schedule.contains("T_max") ? "" : "cosine without T_max";
  return schedule.contains("then") ? spanning_schedule(schedule["then"]) : "";
}

Json without_names(const Json& config, RunIdentity& identity) {
  if (config.contains("command")) {
    Json settings = Json::object();
    for (const char* key : {"command", "shell", "params", "repeat", kLineageKey}) {
      if (config.contains(key)) settings[key] = config[key];
    }
    return settings;
  }
  Json settings = numbers_of(config, top_level_settings());
  if (settings.contains("dataset") && settings["dataset"].is_object()) {
    if (settings["dataset"].contains("name")) identity.source = settings["dataset"]["name"].dump();
    settings["dataset"] =
        numbers_of(settings["dataset"], find_setting(top_level_settings(), "dataset")->table());
  }
  if (settings.contains("network") && settings["network"].is_object()) {
    settings["network"].erase("name");
    if (settings["network"].contains("layers"))
      take_names(settings["network"]["layers"], "", identity.layers);
  }
  return settings;
}

// Whether a run without the key, as versions left it that did not know it, is one with this value.
bool is_default(const std::string& key, const std::string& value) {
  const std::optional<Setting> setting = setting_at(key_path(key));
  return setting && setting->default_value &&
         std::visit([](const auto& v) { return value_text(v); }, *setting->default_value) == value;
}

}  // namespace

bool changes_only_times(std::string_view key) {
  const KeyPath path = key_path(key);
  const Setting* top = find_setting(top_level_settings(), path[0]);
  if (top != nullptr && top->changes == Changes::kTimes) return true;
  const std::optional<Setting> setting = setting_at(path);
  return setting && setting->changes == Changes::kTimes;
}

RunIdentity identity_of(const RunRecord& run) { return identity_of(run.config, run.device, run.provenance); }

RunIdentity identity_of(const Json& config, const std::string& device, const Json& provenance) {
  RunIdentity identity;
  if (!config.is_object()) return identity;
  Json settings = without_names(config, identity);
  // The first members of a population are runs as others are.
  if (settings.contains(kLineageKey) && settings[kLineageKey].empty()) settings.erase(kLineageKey);
  settings["device"] = device;
  for (const char* key : {"numerics", "init_sha256"}) {
    if (provenance.contains(key)) settings[key] = provenance[key];
  }
  flatten(settings, "", identity.settings);
  std::sort(identity.settings.begin(), identity.settings.end());
  identity.data = data_files(provenance);
  const Json epochs = config.value("epochs", Json(0));
  identity.epochs = epochs.is_number_integer() ? epochs.get<int>() : 0;
  identity.spanning_schedule = spanning_schedule(config.value("schedule", Json()));
  return identity;
}

std::vector<SettingDifference> differences(const RunIdentity& before, const RunIdentity& now) {
  constexpr const char* kNothing = "nothing";
  using File = RunIdentity::Files::value_type;
  std::vector<SettingDifference> found;
  auto a = before.settings.begin(), b = now.settings.begin();
  while (a != before.settings.end() || b != now.settings.end()) {
    if (b == now.settings.end() || (a != before.settings.end() && a->first < b->first)) {
      if (!is_default(a->first, a->second)) found.push_back({a->first, a->second, kNothing});
      ++a;
    } else if (a == before.settings.end() || b->first < a->first) {
      if (!is_default(b->first, b->second)) found.push_back({b->first, kNothing, b->second});
      ++b;
    } else {
      if (a->second != b->second) found.push_back({a->first, a->second, b->second});
      ++a, ++b;
    }
  }
  // Where the content of one is not known, names have to do.
  if (before.data && now.data) {
    if (!std::ranges::equal(*before.data, *now.data, {}, &File::second, &File::second)) {
      found.push_back(
          {"data", changed_files(*before.data, *now.data), changed_files(*now.data, *before.data)});
    }
  } else if (before.source != now.source) {
    found.push_back({"dataset", before.source, now.source});
  }
  const std::string& schedule =
      now.spanning_schedule.empty() ? before.spanning_schedule : now.spanning_schedule;
  if (!schedule.empty() && before.epochs != now.epochs) {
    found.push_back(
        {"epochs", std::to_string(before.epochs), std::to_string(now.epochs),
         fmt::format("the schedule, {}, spreads over all epochs, so every one of them has other learning "
                     "rates",
                     schedule)});
  }
  return found;
}

std::string to_string(const std::vector<SettingDifference>& differences) {
  // Another optimizer has other arguments, which nobody needs to hear of besides its name.
  std::set<std::string> replaced;
  for (const SettingDifference& difference : differences) {
    if (difference.key.ends_with(".name"))
      replaced.insert(difference.key.substr(0, difference.key.size() - std::string_view(".name").size()));
  }
  constexpr std::size_t kMaxShown = 5;  // of an object: another network differs in each layer
  std::map<std::string, std::size_t> counts;
  std::string text;
  for (const SettingDifference& difference : differences) {
    const std::string object = difference.key.substr(0, difference.key.find('.'));
    if (replaced.contains(object) && !difference.key.ends_with(".name")) continue;
    if (++counts[object] > kMaxShown) continue;
    if (!text.empty()) text += ", ";
    text += fmt::format("{}: {} -> {}", difference.key, difference.before, difference.now);
    if (!difference.why.empty()) text += fmt::format(" ({})", difference.why);
  }
  for (const auto& [object, count] : counts)
    if (count > kMaxShown) text += fmt::format(", {} more of {}", count - kMaxShown, object);
  return text;
}

}  // namespace sweep
