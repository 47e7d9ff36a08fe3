// Which samples are split off for validation and test.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace sweep {

enum class SplitMethod {
  kAuto,       // kStratified where samples come class by class, as in a folder of images; otherwise kEnd
  kEnd,        // the last samples, in the order of the files
  kRandom,     // any samples, drawn by DatasetSpec::split_seed
  kStratified  // as kRandom, with the same fraction of every class
};

/// "auto", "end", "random", "stratified", in the order of the enum.
std::span<const std::string> split_method_names();
const std::string& split_method_name(SplitMethod method);

/// Throws ConfigError, listing the allowed names, for any other name.
SplitMethod parse_split_method(std::string_view name);

}  // namespace sweep
