// Where a device with memory of its own reads the samples from.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace sweep {

enum class Placement {
  kAuto,    // kDevice if the set fits into the memory that is free when it is first needed, else kHost
  kDevice,  // the whole set is copied to the device once, and batches name its rows
  kHost,    // each batch is gathered on the host and copied while the device works on the one before
};

/// "auto", "device", "host".
std::span<const std::string> placement_names();
const std::string& placement_name(Placement placement);

/// Throws ConfigError, saying what is allowed, if there is no such name.
Placement parse_placement(std::string_view name);

}  // namespace sweep
