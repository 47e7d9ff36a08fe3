// The CPU engine: batches cut into blocks of 16 images, blocks shared out over threads, sums in a fixed
// order.
#pragma once

#include <memory>

#include "core/engine/engine.h"

namespace sweep {

/// See make_engine().
std::unique_ptr<Engine> make_cpu_engine(const Network& network, const EngineOptions& options);

}  // namespace sweep
