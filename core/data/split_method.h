// Which samples are split off for validation and test.
#pragma once

#include "core/base/enum_names.h"

namespace sweep {

enum class SplitMethod {
  kAuto,       // kStratified where samples come class by class, as in a folder of images; otherwise kEnd
  kEnd,        // the last samples, in the order of the files
  kRandom,     // any samples, drawn by DatasetSpec::split_seed
  kStratified  // as kRandom, with the same fraction of every class
};

inline const EnumNames<SplitMethod>& split_method_names() {
  static const EnumNames<SplitMethod> names("split", {"auto", "end", "random", "stratified"});
  return names;
}

}  // namespace sweep
