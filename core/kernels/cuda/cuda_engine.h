// The CUDA engine: whole batches, layer by layer, as graphs that are recorded once.
#pragma once

#include <memory>

#include "core/engine/engine.h"

namespace sweep {

/// Compiles `network` for options.device, a CUDA device that can be used. Throws DeviceError if its memory
/// does not suffice, saying how much was asked for.
std::unique_ptr<Engine> make_cuda_engine(const Network& network, const EngineOptions& options);

}  // namespace sweep
