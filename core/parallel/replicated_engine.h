// One engine in front of many: data parallel training.
//
// The program sees only rank 0. Rank 0 passes each call on to the other ranks, which do the same: each
// computes its part of the batch, they exchange the parts, and each takes the whole step.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/engine/engine.h"
#include "core/parallel/communicator.h"

namespace sweep {

/// What the ranks of a group compute of a batch, of its samples for example: where each rank's begin, and
/// where the last rank's end, for every turn of the batch; see EngineOptions::accumulation_steps. Filled anew
/// for each batch; keeps its memory.
struct RankShares {
  std::size_t ranks = 1;
  std::vector<std::size_t> begins = {};  // [turns][ranks + 1]

  std::size_t turns() const { return begins.size() / (ranks + 1); }
  /// [ranks + 1]
  std::span<const std::size_t> of(std::size_t turn) const {
    return std::span(begins).subspan(turn * (ranks + 1), ranks + 1);
  }
};

/// The engine of one rank. The engines of all ranks have the same network and options, get the same calls
/// with the same arguments, and have the same state after each of them, bit for bit. train() and the
/// functions that evaluate exchange what each has computed of the batch; profile() is for one rank alone.
class ReplicaEngine : public Engine {
 public:
  /// Which samples of a batch of `samples` the ranks compute; a rank looks at no others. In evaluation there
  /// is one turn. Valid until the next call. Allocates no more once a batch as large has been shared.
  virtual const RankShares& sample_shares(std::size_t samples, bool training) = 0;

  /// To be called if a rank has failed and only the destructor follows: it then waits for no other rank. The
  /// default implementation is for engines whose destructors never wait.
  virtual void abandon_group() noexcept {}
};

/// Makes the engine of a rank, which `group` outlives. Throws as make_engine(); what may fail on one rank is
/// done by on_all_ranks().
using MakeReplica = std::function<std::unique_ptr<ReplicaEngine>(
    const Network& network, const EngineOptions& options, Communicator& group)>;

/// An engine whose options.parallel.data devices are threads of this process, which share options.threads
/// evenly, at least one each. Throws as make_engine(); CommunicatorError from any call if a device has
/// failed.
std::unique_ptr<Engine> make_threaded_engine(const Network& network, const EngineOptions& options,
                                             const MakeReplica& make);

/// An engine on all ranks of `group`, whose others are in serve_replicas(). For rank 0. At most one at a
/// time. `group` must outlive it. Throws ReplicaError if one of the ranks cannot make its own; so may train()
/// for a first batch of its size. Another one can be made then.
std::unique_ptr<Engine> make_group_engine(const Network& network, const EngineOptions& options,
                                          Communicator& group, const MakeReplica& make);

/// What the ranks of a group except rank 0 do: they have an engine as long as make_group_engine()'s lives.
/// Returns what rank 0 says in end_replicas(). Throws CommunicatorError if another rank has failed; an error
/// of this rank that is not a ReplicaError is passed to all others, see Communicator::abort(), and thrown.
int serve_replicas(Communicator& group, const MakeReplica& make);

/// Why make_engine_on() with a group of `ranks` processes cannot make the engine, though options.device
/// itself can be used; nothing if it can. The same as parallel_unavailable_reason() if options.parallel.data
/// is 1. Thread-safe.
std::optional<std::string> group_unavailable_reason(const Network& network, const EngineOptions& options,
                                                    int ranks);

/// Like make_engine(), but options.parallel.data > 1 devices are the ranks of `group`: rank 0 calls this, the
/// others serve_replicas(). At most one engine at a time; `group` must outlive it.
std::unique_ptr<Engine> make_engine_on(Communicator& group, const Network& network,
                                       const EngineOptions& options);

/// The same as serve_replicas() above, with the engines that make_engine_on() makes.
int serve_replicas(Communicator& group);
/// Lets serve_replicas() return `result` on all other ranks of `group`. For rank 0, without an engine.
void end_replicas(Communicator& group, int result);

}  // namespace sweep
