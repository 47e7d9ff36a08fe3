// What rank 0 tells the others. Not part of the installed interface.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/network/schedule.h"
#include "core/parallel/communicator.h"

namespace sweep {

struct ReplicaCommand {
  enum class Kind : std::uint32_t {
    kMakeEngine,
    kTrain,
    kEvaluate,
    kPredict,
    kTakeTotals,
    kSetParameters,
    kSetBuffers,
    kSetOptimizerState,
    kEndEngine,
    kEndProcess
  } kind = Kind::kEndProcess;
  int result = 0;               // of kEndProcess
  StepValues values = 0;        // of kTrain
  std::int64_t steps = 0;       // with kSetOptimizerState
  std::uint64_t count = 0;      // bytes of kMakeEngine; samples of a batch; arrays of a state
  const void* batch = nullptr;  // if ranks share memory
  void* outputs = nullptr;      // [count][outputs], likewise; nullptr: none are wanted
};

/// Rank 0's `values` to all: to be called by rank 0. broadcast() takes what it does not change.
inline void send_floats(Communicator& group, std::span<const float> values) {
  const auto bytes = std::as_bytes(values);
  group.broadcast({const_cast<std::byte*>(bytes.data()), bytes.size()});
}
/// The other ranks' side of it.
inline std::vector<float> receive_floats(Communicator& group, std::size_t count) {
  std::vector<float> values(count);
  group.broadcast(bytes_of(std::span<float>(values)));
  return values;
}

}  // namespace sweep
