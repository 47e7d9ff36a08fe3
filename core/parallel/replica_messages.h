// What rank 0 sends to ranks that do not share its memory: engines, and batches. Not part of the installed
// interface.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/data/data_loader.h"
#include "core/engine/engine.h"
#include "core/network/network.h"
#include "core/parallel/communicator.h"
#include "core/parallel/replicated_engine.h"

namespace sweep {

/// A network and the options of its engine.
struct SentEngine {
  Network network;
  EngineOptions options;
};

/// Between processes of one program on machines of one kind only: numbers are in the order of this machine.
std::vector<std::byte> encode_engine(const Network& network, const EngineOptions& options);
/// Throws DataError if `bytes` was not made by encode_engine().
SentEngine decode_engine(std::span<const std::byte> bytes);

/// What the ranks have to know of a batch before they get their samples.
struct BatchKind {
  std::uint64_t samples = 0;
  bool has_float_samples = false, has_number_targets = false;
};

/// The samples of the batches of one engine. A rank gets those that it computes, at their places in a batch
/// that is otherwise undefined. It gets all labels, because class weights are summed over them. Allocates
/// only for a larger batch than before. Not thread-safe.
class SentBatch {
 public:
  explicit SentBatch(const Network& network);

  /// Passes on rank 0's `batch`, which is not empty; the other ranks have none, nullptr. Returns it, or what
  /// was received, which is valid until the next call.
  Batch exchange(Communicator& group, const BatchKind& kind, const RankShares& shares, const Batch* batch);

 private:
  void scatter(Communicator& group, std::vector<std::byte>& array, std::size_t bytes,
               const RankShares& shares);

  std::size_t values_, outputs_;  // of a sample
  std::vector<std::byte> samples_, targets_;
  std::vector<std::uint32_t> rows_;
  std::vector<std::size_t> begins_;  // of what is scattered, in bytes
};

}  // namespace sweep
