// What the command line and the machine add to a sweep file.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace sweep {

/// Options besides key=value overrides.
struct LoadOptions {
  std::optional<std::string> epochs;     // --epochs, as typed; replaces the file's and any axis of that key
  std::optional<std::string> seed;       // --seed, likewise
  std::optional<bool> deterministic;     // --deterministic or --no-deterministic, likewise
  std::vector<std::string> slurm = {};   // "KEY=VALUE" of --slurm, into "slurm"
  std::optional<int> cuda_device_count;  // CUDA devices of this machine; nothing: ask it
};

}  // namespace sweep
