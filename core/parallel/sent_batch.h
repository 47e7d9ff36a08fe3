// Batches on their way to ranks that do not share memory. Not part of the installed interface.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/data/data_loader.h"
#include "core/network/network.h"
#include "core/parallel/communicator.h"
#include "core/parallel/replicated_engine.h"

namespace sweep {

/// The samples of the batches of one engine. A rank gets those that it computes, at their places in a batch
/// that is otherwise undefined. It gets all labels, because class weights are summed over them. Allocates
/// only for a larger batch than before. Not thread-safe.
class SentBatch {
 public:
  explicit SentBatch(const Network& network);

  /// Rank 0's side.
  void send(Communicator& group, const Batch& batch, const SampleShares& shares);
  /// The other ranks' side: a batch of `size` samples, valid until the next call.
  Batch receive(Communicator& group, std::size_t size, const SampleShares& shares);

 private:
  struct Kinds {
    bool float_samples = false, number_targets = false;
  };

  void scatter(Communicator& group, std::vector<std::byte>& array, std::size_t bytes,
               const SampleShares& shares);

  std::size_t values_, outputs_;  // of a sample
  std::vector<std::byte> samples_, targets_;
  std::vector<std::uint32_t> rows_;
  std::vector<std::size_t> begins_;  // of what is scattered, in bytes
};

}  // namespace sweep
