#include "runmanager/sweepfile/named_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <set>

#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/suggest.h"
#include "core/base/text.h"
#include "runmanager/config/run_config.h"
#include "runmanager/sweepfile/space.h"

namespace sweep {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

// Where `path` leads: one in a file from `directory`, the file's, one on the command line from the current
// directory.
fs::path located(const fs::path& path, const JsonPlace& place, const fs::path& directory) {
  return place.has_lines() ? directory / path : path;
}

// Makes the path in `value`, which is at `place`, absolute. `directory`: of the sweep file.
void make_absolute(Json& value, const JsonPlace& place, const fs::path& directory) {
  if (!value.is_string() || value == "" || value.get<std::string>().find('\0') != std::string::npos) return;
  std::error_code error;
  const fs::path absolute = fs::absolute(located(value.get<std::string>(), place, directory), error);
  if (!error) value = absolute.lexically_normal().string();
}

const KeyPath kNetworkKey = {"network"}, kDatasetKey = {"dataset"};

// Makes the paths in the value of `key` absolute.
void make_paths_absolute(Json& value, const KeyPath& key, const JsonPlace& place, const fs::path& directory) {
  if (is_file_path(key)) make_absolute(value, place, directory);
  if (key == kDatasetKey && value.is_object() && value.contains("path"))
    make_absolute(value["path"], place, directory);
}

KeyPath below(KeyPath path, const std::string& part) {
  path.push_back(part);
  return path;
}

// Takes the key that a value is of, the value, and the way to it in the file.
using Visit = std::function<void(const KeyPath& key, Json& value, const KeyPath& at)>;

// Calls `visit` for every value that is listed in `object`, a set of axes or conditions.
void visit_values(JsonDocument& root, Json& object, const KeyPath& path, bool is_axes, const Visit& visit) {
  if (!object.is_object()) return;
  Problems ignored;  // Mistakes in keys are reported when the axes and rules are read.
  for (auto& [name, value] : object.items()) {
    const std::optional<KeyPath> key =
        resolve_key(name, root.place(path), is_axes ? KeyUse::kAxis : KeyUse::kValue, ignored);
    const KeyPath at = below(path, name);
    if (key && value.is_array()) {
      for (std::size_t i = 0; i < value.size(); ++i) visit(*key, value[i], below(at, std::to_string(i)));
    } else if (key && !is_axes) {
      visit(*key, value, at);
    }
  }
}

void visit_axes(JsonDocument& root, const Visit& visit) {
  each_axes(root,
            [&](Json& axes, const KeyPath& at) { visit_values(root, axes, at, /*is_axes=*/true, visit); });
}

// Also the points that a search is given: they name values of axes as conditions do.
void visit_conditions(JsonDocument& root, const Visit& visit) {
  for (const KeyPath& path : {KeyPath{"exclude"}, KeyPath{"when"}, KeyPath{"search", "points"}}) {
    const Json::json_pointer rules(fmt::format("/{}", fmt::join(path, "/")));
    if (!root.json.contains(rules)) continue;
    for (auto& [name, rule] : root.json[rules].items())
      visit_values(root, rule, below(path, name), /*is_axes=*/false, visit);
  }
}

// Gives the network another name if a different one of `known` has its own.
void make_name_unique(Json& network, std::map<std::string, Json>& known) {
  if (!network.is_object() || !network.contains("name") || !network["name"].is_string()) return;
  const std::string wanted = network["name"];
  for (int n = 2;; ++n) {
    const auto [other, is_new] = known.emplace(network["name"], network);
    if (is_new || same_value(other->second, network)) return;
    network["name"] = fmt::format("{}-{}", wanted, n);
  }
}

// The network of the file, or of the command line, if it is not an axis; nothing if it is not that of a
// file.
JsonView plain_network(const JsonView& root, const std::vector<Assignment>& overrides) {
  JsonView network = root.find("network");
  for (const Assignment& assignment : overrides) {
    if (assignment.path == kNetworkKey) network = assignment.value;
  }
  return network->is_string() ? network : JsonView();
}

void inline_networks(JsonDocument& root, const std::vector<Assignment>& overrides, NetworkFiles& files) {
  std::map<std::string, Json> networks;                       // of axes, by their names
  std::vector<std::pair<const Json*, std::string>> of_files;  // and what runs call them
  Problems unreadable;
  visit_axes(root, [&](const KeyPath& key, Json& value, const KeyPath& at) {
    if (key != kNetworkKey) return;
    const JsonDocument* network = nullptr;
    if (value.is_string()) {
      network = files.read(JsonDocument(value, root.place(at)), unreadable);
      if (network == nullptr) return;
      // Member by member, so that a file that is named twice is reported where it is named.
      value = Json::object();
      for (const JsonView& member : JsonView(*network).children())
        root.set(value[member.key()], below(at, member.key()), member);
    }
    make_name_unique(value, networks);
    if (network != nullptr && value["name"].is_string()) of_files.emplace_back(&network->json, value["name"]);
  });
  const JsonDocument file = root;
  if (const JsonView plain = plain_network(file, overrides)) {
    if (const JsonDocument* const network = files.read(plain, unreadable))
      of_files.emplace_back(&network->json, JsonView(*network).find("name").text());
  }
  visit_conditions(root, [&](const KeyPath& key, Json& value, const KeyPath& at) {
    if (key != kNetworkKey || !value.is_string()) return;
    const JsonDocument* const wanted = files.read(JsonDocument(value, root.place(at)), unreadable);
    const auto same = std::ranges::find_if(of_files, [&](const auto& known) {
      return wanted != nullptr && same_value(*known.first, wanted->json);
    });
    if (same != of_files.end() && !same->second.empty()) value = same->second;
  });
}

// Makes the paths of "cwd", which is the file's directory by default, and "inputs" absolute.
void make_command_self_contained(JsonDocument& root, const std::filesystem::path& directory) {
  Json& cwd = root.json.emplace("cwd", "").first.value();
  if (cwd == "") cwd = ".";
  if (cwd != kRunCwd) make_absolute(cwd, root.place({"cwd"}), directory);
  if (!root.json.contains("inputs") || !root.json["inputs"].is_array()) return;
  const JsonPlace inputs = root.place({"inputs"});
  for (Json& input : root.json["inputs"]) make_absolute(input, inputs, directory);
}

}  // namespace

fs::path nearest_file(const fs::path& missing) {
  constexpr std::size_t kMaxFiles = 1000;  // Larger directories take too long for a guess.
  std::vector<std::string> names;
  std::error_code failed;
  for (fs::directory_iterator it(directory_of(missing), failed), end;
       !failed && it != end && names.size() < kMaxFiles; it.increment(failed)) {
    const fs::path name = it->path().filename();  // `missing` itself if it is a link to nothing
    if (name.extension() == ".json" && name != missing.filename()) names.push_back(name.string());
  }
  std::sort(names.begin(),
            names.end());  // Directories have no order; the suggestion must not depend on it.
  const std::string nearest = nearest_name(missing.filename().string(), names);
  return nearest.empty() ? fs::path() : missing.parent_path() / nearest;
}

void NetworkFiles::load(JsonDocument& tree, Problems& problems) {
  const JsonView name = JsonView(tree).find("network");
  if (!name->is_string()) return;
  Json& network = tree.json["network"];
  if (const JsonDocument* content = read(name, problems))
    tree.set(network, {"network"}, *content);
  else
    network = nullptr;
}

const JsonDocument* NetworkFiles::read(const JsonView& name, Problems& problems) {
  if (name.text().empty() || name.text().find('\0') != std::string::npos) {
    problems.add_value(name, "the name of a network file, or an object");
    return nullptr;
  }
  const fs::path path = located(name.text(), name.place(), directory_).lexically_normal();
  if (const auto cached = cache_.find(path); cached != cache_.end()) return &cached->second;
  try {
    JsonDocument content = parse_json(read_file(path), path.string());
    if (!content.json.is_object()) {
      problems.add_value(content, "an object: a network with \"layers\"");
      return nullptr;
    }
    Json named = {{"name", path.stem().string()}};
    named.update(content.json);
    content.json = std::move(named);
    return &cache_.emplace(path, std::move(content)).first->second;
  } catch (const DataError& error) {
    const fs::path nearest = nearest_file(path).filename();
    const std::string suggested = (fs::path(name.text()).parent_path() / nearest).string();
    const bool is_other = !nearest.empty() && suggested != name.text();
    problems.add(name, fmt::format("got {}, want a network file; {}{}", describe(name), error.what(),
                                   did_you_mean(is_other ? suggested : "")));
  } catch (const ConfigError& error) {
    problems.add_message(error.what());
  }
  return nullptr;
}

void make_self_contained(JsonDocument& root, std::vector<Assignment>& overrides, const fs::path& directory,
                         NetworkFiles& files) {
  if (is_command_file(root)) return make_command_self_contained(root, directory);
  const Visit visit = [&](const KeyPath& key, Json& value, const KeyPath& at) {
    make_paths_absolute(value, key, root.place(at), directory);
  };
  for (auto& [key, value] : root.json.items()) visit({key}, value, {key});
  for (Assignment& assignment : overrides)
    make_paths_absolute(assignment.value.json, assignment.path, assignment.place, directory);
  visit_axes(root, visit);
  visit_conditions(root, visit);
  inline_networks(root, overrides, files);
}

bool is_file_path(const KeyPath& path) {
  return path == KeyPath{"init"} || path == KeyPath{"dataset", "path"};
}

std::map<std::string, std::string> short_paths(const std::vector<std::string>& paths) {
  std::map<std::string, std::vector<std::string_view>> parts;
  for (const std::string& path : paths) {
    parts[path] = split(path, '/');
    std::erase(parts[path], "");
  }
  std::map<std::string, std::string> names;
  for (std::size_t count = 1, longest = 1; count <= longest; ++count) {
    std::set<std::string> distinct;
    for (const auto& [path, list] : parts) {
      longest = std::max(longest, list.size());
      const auto shown = static_cast<std::ptrdiff_t>(std::min(count, list.size()));
      names[path] = fmt::format("{}", fmt::join(list.end() - shown, list.end(), "/"));
      distinct.insert(names[path]);
    }
    if (distinct.size() == parts.size()) break;
  }
  return names;
}

}  // namespace sweep
