// Which devices a rank of a group has. Internal to the CUDA engine.
#pragma once

#include <vector>

#include "core/engine/engine.h"
#include "core/engine/stages.h"
#include "core/network/network.h"
#include "core/parallel/communicator.h"

namespace sweep::cuda {

/// The stages of `network` on the own rank's devices, of which one has all layers if options.parallel has no
/// stages. If the ranks are threads, it has the devices of replica number `rank`, see stages_of_replica(); if
/// they are processes, those of replica number `local rank`, modulo the devices that the process sees, of
/// which it may have been given its own alone (CUDA_VISIBLE_DEVICES). By all ranks together. Throws
/// DeviceError if a device cannot be used, if two ranks have the same one, or if they are not all of one
/// model, naming the ranks.
std::vector<Stage> stages_of_rank(const Network& network, const EngineOptions& options, Communicator& group);

}  // namespace sweep::cuda
