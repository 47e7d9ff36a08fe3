// Where a GPU reads the samples from.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace sweep {

enum class Placement {
  kAuto,    // kDevice if the set fits into the memory that is free when it is first needed, otherwise kHost
  kDevice,  // the whole set is copied to the device once; a batch is a list of its rows
  kHost,    // each batch is gathered on the host and copied while the device works on the previous one
};

/// "auto", "device", "host", in the order of the enum.
std::span<const std::string> placement_names();
const std::string& placement_name(Placement placement);

/// Throws ConfigError, listing the allowed names, for any other name.
Placement parse_placement(std::string_view name);

}  // namespace sweep
