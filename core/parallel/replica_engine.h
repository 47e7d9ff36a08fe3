// An engine that shares each batch with engines of its kind on other devices.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include "core/engine/engine.h"
#include "core/parallel/communicator.h"
#include "core/parallel/sample_shares.h"

namespace sweep {

/// The engine of one rank. The engines of all ranks have the same network and options, get the same calls
/// with the same arguments, and have the same state after each of them, bit for bit. train() and the
/// functions that evaluate exchange what each has computed of the batch; profile() is for one rank alone.
class ReplicaEngine : public Engine {
 public:
  /// Which samples of a batch of `samples` the ranks compute; a rank looks at no others. In evaluation there
  /// is one turn. Valid until the next call. Allocates no more once a batch as large has been shared.
  virtual const SampleShares& sample_shares(std::size_t samples, bool training) = 0;

  /// To be called if a rank has failed and only the destructor follows: it then waits for no other rank. The
  /// default implementation is for engines whose destructors never wait.
  virtual void abandon_group() noexcept {}
};

/// Makes the engine of a rank, which `group` outlives. Throws as make_engine(); what may fail on one rank is
/// done by on_all_ranks().
using MakeReplica = std::function<std::unique_ptr<ReplicaEngine>(
    const Network& network, const EngineOptions& options, Communicator& group)>;

}  // namespace sweep
