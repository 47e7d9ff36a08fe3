// Which devices a rank of a group has. Internal to the CUDA engine.
#pragma once

#include <vector>

#include "core/engine/engine.h"
#include "core/engine/stages.h"
#include "core/network/network.h"
#include "core/parallel/communicator.h"

namespace sweep::cuda {

/// Returns the stages of `network` on this rank's devices; one device has all layers if options.parallel has
/// no stages. If the ranks are threads, the rank has the devices of replica number `rank`, see
/// stages_of_replica(). If they are processes, it has those of replica number `local rank`, modulo the
/// devices that the process sees, which may be only its own (CUDA_VISIBLE_DEVICES). Called by all ranks
/// together. Throws ReplicaError, naming the ranks, if a device cannot be used, if two ranks have the same
/// one, or if not all are of one model.
std::vector<Stage> stages_of_rank(const Network& network, const EngineOptions& options, Communicator& group);

}  // namespace sweep::cuda
