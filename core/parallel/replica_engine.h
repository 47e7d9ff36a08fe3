// An engine that shares each batch with engines of its kind on other devices.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "core/engine/engine.h"
#include "core/parallel/communicator.h"

namespace sweep {

/// The engine of one rank. The engines of all ranks have the same network and options, get the same calls
/// with the same arguments, and have the same state after each of them, bit for bit. train() and the
/// functions that evaluate exchange what each has computed of the batch; profile() is for one rank alone.
class ReplicaEngine : public Engine {
 public:
  /// Which samples of a batch of `samples` the ranks compute, all others are not looked at: for each turn
  /// that the batch is trained in, where each rank's begin, and the end of the last's. In evaluation there is
  /// one turn.
  virtual std::vector<std::vector<std::size_t>> sample_shares(std::size_t samples, bool training) const = 0;
};

/// Makes the engine of a rank, which `group` outlives. Throws as make_engine().
using MakeReplica = std::function<std::unique_ptr<ReplicaEngine>(
    const Network& network, const EngineOptions& options, Communicator& group)>;

}  // namespace sweep
