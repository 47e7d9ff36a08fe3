// Engines on all ranks of a group, for the kinds of devices that there are; in core/kernels.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "core/engine/engine.h"
#include "core/parallel/communicator.h"

namespace sweep {

/// Why make_engine_on() with a group of `ranks` processes cannot make the engine, though options.device
/// itself can be used; nothing if it can. The same as parallel_unavailable_reason() if options.parallel.data
/// is 1. Thread-safe.
std::optional<std::string> group_unavailable_reason(const Network& network, const EngineOptions& options,
                                                    int ranks);

/// Like make_engine(), but options.parallel.data > 1 devices are the ranks of `group`: rank 0 calls this, the
/// others serve_replicas(). At most one engine at a time; `group` must outlive it.
std::unique_ptr<Engine> make_engine_on(Communicator& group, const Network& network,
                                       const EngineOptions& options);

/// What the ranks except 0 do until rank 0 calls end_replicas(). Returns its result.
int serve_replicas(Communicator& group);

}  // namespace sweep
