#include "runmanager/sweepfile/config_reader.h"

#include <algorithm>
#include <memory>
#include <string_view>

#include "core/base/suggest.h"

namespace sweep {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

fs::path nearest_file(const fs::path& missing) {
  constexpr std::size_t kMaxFiles = 1000;  // Larger directories take too long for a guess.
  const fs::path directory = missing.has_parent_path() ? missing.parent_path() : ".";
  std::vector<std::string> names;
  std::error_code failed;
  for (fs::directory_iterator it(directory, failed), end; !failed && it != end && names.size() < kMaxFiles;
       it.increment(failed)) {
    if (it->path().extension() == ".json") names.push_back(it->path().filename().string());
  }
  std::sort(names.begin(),
            names.end());  // Directories have no order; the suggestion must not depend on it.
  const std::string nearest = nearest_name(missing.filename().string(), names);
  return nearest.empty() ? fs::path() : missing.parent_path() / nearest;
}

std::span<const Setting* const> run_settings() {
  static const std::vector<const Setting*> settings = [] {
    std::vector<const Setting*> rows;
    for (const Setting& setting : top_level_settings()) {
      if (setting.sweepable) rows.push_back(&setting);
    }
    return rows;
  }();
  return settings;
}

RunConfig read_run_config(const JsonView& tree, const ReadContext& context, Problems& problems) {
  check_keys(tree, top_level_settings(), problems);
  RunConfig config;
  const Json none = Json::object();
  for (const Setting* setting : run_settings()) {
    config.resolved.set(setting->name,
                        std::make_shared<const Json>(complete_value(
                            *setting, {tree.find(setting->name), tree, none, context, problems})));
  }
  config.resolved.set("repeat", std::make_shared<const Json>(0));  // no key of the file, which has "repeats"
  if (!problems.empty()) return config;  // What is wrong cannot be read, and is never asked for.
  for (const Setting* setting : run_settings()) {
    const auto value = config.resolved.find(setting->name);
    read_setting(setting->name, value != nullptr ? *value : Json())(config);
  }
  return config;
}

}  // namespace sweep
