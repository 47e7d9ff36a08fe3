// How much memory an engine takes, without making it.
#pragma once

#include <cstddef>
#include <optional>

#include "core/engine/engine.h"

namespace sweep {

/// Bytes of the buffers that make_engine(network, options) would allocate in host memory and fill:
/// parameters, gradients and their partial sums, optimizer state, activations. They are counted by the code
/// that allocates them. `profiled`: samples of the largest batch that Engine::profile() will get, which takes
/// more; 0: it is not called. Nothing for engines of other devices than the CPU, whose libraries choose their
/// own workspaces. Throws as make_engine(). Takes about as long as it, but none of the memory. Thread-safe.
std::optional<std::size_t> engine_memory(const Network& network, const EngineOptions& options,
                                         std::size_t profiled = 0);

}  // namespace sweep
