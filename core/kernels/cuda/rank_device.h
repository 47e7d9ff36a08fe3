// Which device a rank of a group has. Internal to the CUDA engine.
#pragma once

#include "core/engine/engine.h"
#include "core/parallel/communicator.h"

namespace sweep::cuda {

/// The own rank's device: if the ranks are threads, the one `rank` places behind options.device; if they are
/// processes, the one `local rank` places behind it, modulo the devices that the process sees, of which it
/// may have been given one alone (CUDA_VISIBLE_DEVICES). By all ranks together. Throws DeviceError if it
/// cannot be used, if two ranks have the same one, or if they are not all of one model, naming the ranks.
Device device_of_rank(const EngineOptions& options, Communicator& group);

}  // namespace sweep::cuda
