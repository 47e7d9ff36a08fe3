// The keys and plain values of a YAML file, as Lightning and W&B leave the settings of a run.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sweep {

struct FlatYaml {
  std::vector<std::pair<std::string, std::string>> values;  // texts, without quotes
  std::vector<std::string> nested;                          // keys whose value is a list, an object or a tag
};

/// Reads "key: value" lines at the left margin. An object whose "value" is plain, as in W&B's config.yaml,
/// counts as that value. Whatever else is nested is only named. Never throws: lines of another form are
/// passed over.
FlatYaml read_flat_yaml(std::string_view text);

}  // namespace sweep
