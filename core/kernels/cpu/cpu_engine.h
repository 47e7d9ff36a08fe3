// The CPU engine: batches are cut into blocks of 16 images, blocks are distributed over threads, and sums
// have a fixed order. core/kernels/README.md explains the design.
#pragma once

#include <memory>

#include "core/engine/engine.h"
#include "core/parallel/replicated_engine.h"

namespace sweep {

/// See make_engine(). `network` is copied.
std::unique_ptr<Engine> make_cpu_engine(const Network& network, const EngineOptions& options);

/// The engine of one rank of `group`; see MakeReplica.
std::unique_ptr<ReplicaEngine> make_cpu_replica(const Network& network, const EngineOptions& options,
                                                Communicator& group);

/// Bytes of the buffers of that engine, or of all of options.parallel.data; see engine_memory().
std::size_t cpu_engine_memory(const Network& network, const EngineOptions& options);

}  // namespace sweep
