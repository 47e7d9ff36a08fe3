// One engine in front of many: data parallel training.
//
// The program sees only rank 0. Rank 0 passes each call on to the other ranks, which do the same: each
// computes its part of the batch, they exchange the parts, and each takes the whole step.
#pragma once

#include <memory>

#include "core/parallel/replica_engine.h"

namespace sweep {

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
/// Lets serve_replicas() return `result` on all other ranks of `group`. For rank 0, without an engine.
void end_replicas(Communicator& group, int result);

}  // namespace sweep
