// The CUDA engine: whole batches, layer by layer, as graphs that are recorded once.
#pragma once

#include <memory>

#include "core/engine/engine.h"
#include "core/engine/stages.h"
#include "core/parallel/replicated_engine.h"

namespace sweep {

/// Compiles `network` for options.device, a CUDA device that can be used. Throws DeviceError if its memory
/// does not suffice, saying how much was asked for.
std::unique_ptr<Engine> make_cuda_engine(const Network& network, const EngineOptions& options);

/// The engine of a network whose layers are in `stages`, on CUDA devices that can be used, in the order of
/// the layers; options.parallel.pipeline says how batches are cut. Throws as make_cuda_engine(), and
/// DeviceError if the devices are different GPUs.
std::unique_ptr<Engine> make_staged_cuda_engine(const Network& network, const EngineOptions& options,
                                                const std::vector<Stage>& stages);

/// Makes the engine of one rank of `group`, see MakeReplica. If the ranks are threads, it is on the device
/// `rank` places after options.device; if they are processes, on one of the devices that this one sees, by
/// its local rank. With stages in options.parallel each rank has a set of devices instead, see
/// stages_of_replica(). Also throws CommunicatorError, and DeviceError unless each rank has its own GPU and
/// all are of one model.
std::unique_ptr<ReplicaEngine> make_cuda_replica(const Network& network, const EngineOptions& options,
                                                 Communicator& group);

/// Most ranks of a group: with more, some would have nothing to compute.
inline constexpr int kMaxCudaReplicas = 8;

}  // namespace sweep
