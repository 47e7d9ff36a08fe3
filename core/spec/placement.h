// Where a GPU reads the samples from.
#pragma once

#include "core/base/enum_names.h"

namespace sweep {

enum class Placement {
  kAuto,    // kDevice if the set fits into the memory that is free when it is first needed, otherwise kHost
  kDevice,  // the whole set is copied to the device once; a batch is a list of its rows
  kHost,    // each batch is gathered on the host and copied while the device works on the previous one
};

inline const EnumNames<Placement>& placement_names() {
  static const EnumNames<Placement> names("placement", {"auto", "device", "host"});
  return names;
}

}  // namespace sweep
