#include "runmanager/sweepfile/self_contained.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <set>

namespace sweep {
namespace {

namespace fs = std::filesystem;

const KeyPath kNetworkKey = {"network"}, kDatasetKey = {"dataset"};

void make_absolute(JsonNode& node, const fs::path& directory) {
  const bool is_path =
      node.is(JsonKind::kString) && !node.text.empty() && node.text.find('\0') == std::string::npos;
  if (!is_path) return;
  const bool from_file = node.location != nullptr && node.location->line != 0;
  const fs::path path = node.text;
  std::error_code error;
  const fs::path absolute = fs::absolute(from_file ? directory / path : path, error);
  if (!error) node.text = absolute.lexically_normal().string();
}

// Makes the paths in the value of `key` absolute.
void make_paths_absolute(JsonNode& value, const KeyPath& key, const fs::path& directory) {
  if (is_file_path(key)) make_absolute(value, directory);
  if (key != kDatasetKey) return;
  if (JsonNode* path = value.find("path")) make_absolute(*path, directory);
}

std::optional<KeyPath> path_of(const JsonMember& member, bool for_axis) {
  Problems ignored;  // Mistakes in keys are reported when the axes and rules are read.
  return resolve_key(member.key, *member.key_location, for_axis, ignored);
}

using Visit = std::function<void(const KeyPath& path, JsonNode& value)>;

// Calls `visit` for every value that is listed in `object`, a set of axes or conditions.
void visit_values(JsonNode& object, bool is_axes, const Visit& visit) {
  for (JsonMember& member : object.members) {
    const std::optional<KeyPath> path = path_of(member, is_axes);
    if (!path) continue;
    if (member.value.is(JsonKind::kArray)) {
      for (JsonNode& value : member.value.elements) visit(*path, value);
    } else if (!is_axes) {
      visit(*path, member.value);
    }
  }
}

void visit_axes(JsonNode& root, const Visit& visit) {
  if (JsonNode* params = root.find("params")) visit_values(*params, true, visit);
  if (JsonNode* grids = root.find("grids")) {
    for (JsonNode& grid : grids->elements) visit_values(grid, true, visit);
  }
}

void visit_conditions(JsonNode& root, const Visit& visit) {
  if (JsonNode* exclude = root.find("exclude")) {
    for (JsonNode& rule : exclude->elements) visit_values(rule, false, visit);
  }
  if (JsonNode* when = root.find("when")) {
    for (JsonMember& rule : when->members) visit_values(rule.value, false, visit);
  }
}

// Networks of axes, each under a name that no other one has.
class NetworkNames {
 public:
  // Gives the network another name if a different one has its own.
  void make_unique(JsonNode& network) {
    JsonNode* name = network.find("name");
    if (name == nullptr || !name->is(JsonKind::kString)) return;
    const std::string wanted = name->text;
    for (int n = 2;; ++n) {
      const auto [known, is_new] = networks_.emplace(name->text, network);
      if (is_new || same_value(known->second, network)) return;
      name->text = fmt::format("{}-{}", wanted, n);
    }
  }

 private:
  std::map<std::string, JsonNode> networks_;
};

// The network that the file, or the command line, has where it is no axis; null if it is not that of a file.
const JsonNode* plain_network(const JsonNode& root, const std::vector<Assignment>& overrides) {
  const JsonNode* network = root.find("network");
  for (const Assignment& assignment : overrides) {
    if (assignment.path == kNetworkKey) network = &assignment.value;
  }
  return network != nullptr && network->is(JsonKind::kString) ? network : nullptr;
}

// The name of the network in `wanted`, a file, if `file` holds the same one; null if not.
std::optional<JsonNode> name_of_same_network(const JsonNode& wanted, const JsonNode* file,
                                             NetworkFiles& files) {
  if (file == nullptr || !wanted.is(JsonKind::kString)) return std::nullopt;
  Problems unreadable;
  const JsonNode network = files.read(*file, unreadable), asked_for = files.read(wanted, unreadable);
  const JsonNode* name = network.find("name");
  if (!unreadable.empty() || name == nullptr || !same_value(network, asked_for)) return std::nullopt;
  return *name;
}

void inline_networks(JsonNode& root, const std::vector<Assignment>& overrides, NetworkFiles& files) {
  NetworkNames names;
  std::map<std::string, JsonNode> name_of_file;
  visit_axes(root, [&](const KeyPath& path, JsonNode& value) {
    if (path != kNetworkKey) return;
    const JsonNode file = value;
    if (file.is(JsonKind::kString)) {
      Problems unreadable;
      JsonNode network = files.read(file, unreadable);
      if (!unreadable.empty()) return;
      network.location = file.location;  // so that a file that is named twice is reported where it is named
      value = std::move(network);
    }
    names.make_unique(value);
    const JsonNode* name = value.find("name");
    if (file.is(JsonKind::kString) && name != nullptr) name_of_file[file.text] = *name;
  });
  const JsonNode* plain = plain_network(root, overrides);
  visit_conditions(root, [&](const KeyPath& path, JsonNode& value) {
    if (path != kNetworkKey) return;
    if (const auto name = name_of_file.find(value.text); name != name_of_file.end())
      value.text = name->second.text;
    else if (const auto same = name_of_same_network(value, plain, files))
      value.text = same->text;
  });
}

}  // namespace

void remove_recorded_keys(JsonNode& root) {
  if (root.find("provenance") == nullptr) return;
  static const std::set<std::string> recorded = {"runs", "excluded", "file", "provenance"};
  std::erase_if(root.members, [](const JsonMember& member) { return recorded.contains(member.key); });
}

void make_self_contained(JsonNode& root, std::vector<Assignment>& overrides, const fs::path& directory,
                         NetworkFiles& files) {
  const Visit visit = [&directory](const KeyPath& path, JsonNode& value) {
    make_paths_absolute(value, path, directory);
  };
  for (JsonMember& member : root.members) visit({member.key}, member.value);
  for (Assignment& assignment : overrides) visit(assignment.path, assignment.value);
  visit_axes(root, visit);
  visit_conditions(root, visit);
  inline_networks(root, overrides, files);
}

bool is_file_path(const KeyPath& path) {
  return path == KeyPath{"init"} || path == KeyPath{"dataset", "path"};
}

std::map<std::string, std::string> short_paths(const std::vector<std::string>& paths) {
  std::map<std::string, std::vector<std::string>> parts;
  std::size_t longest = 1;
  for (const std::string& path : paths) {
    std::vector<std::string>& list = parts[path];
    list.clear();
    for (const fs::path& part : fs::path(path).relative_path()) {
      if (!part.empty()) list.push_back(part.string());
    }
    longest = std::max(longest, list.size());
  }
  std::map<std::string, std::string> names;
  for (std::size_t count = 1; count <= longest; ++count) {
    names.clear();
    std::set<std::string> distinct;
    for (const auto& [path, list] : parts) {
      const std::size_t shown = std::min(count, list.size());
      const auto name =
          fmt::format("{}", fmt::join(list.end() - static_cast<std::ptrdiff_t>(shown), list.end(), "/"));
      names[path] = name;
      distinct.insert(name);
    }
    if (distinct.size() == parts.size()) break;
  }
  return names;
}

}  // namespace sweep
