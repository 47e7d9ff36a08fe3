// What the stages of a network work on at the same time: shares of a batch, and micro-batches of them.
//
// A share is what has a gradient of its own, see BatchShares; with one device, or set of devices, and
// without turns that is the whole batch. A micro-batch is some of a share's samples, which go through the
// stages together; different stages work on different micro-batches.
#pragma once

#include <cstddef>
#include <vector>

#include "core/kernels/cuda/batch_shares.h"

namespace sweep::cuda {

/// How a batch is divided over devices and micro-batches.
struct RoundOptions {
  BatchShares shares = {};
  bool together = false;  // whether all of the set's shares of a turn are in one round; else one share is
  std::size_t micro_batches = 1;  // of a share, at most
  std::size_t unit = 1;  // every micro-batch of a share but the last has a multiple of so many samples
};

struct StageRound {
  struct Share {
    int number = 0;       // among BatchShares::count
    SampleRange samples;  // of the batch; they may be none
    std::size_t fed = 0;  // place of the first among the samples that this set of devices is fed
    std::size_t micro_batches = 0;
    int size() const { return static_cast<int>(samples.size()); }
  };
  /// Samples [begin, end) of a share that has samples.
  struct MicroBatch {
    std::size_t share = 0;  // of `shares`
    int begin = 0, end = 0;
  };

  std::vector<Share> shares;              // in their order
  std::vector<MicroBatch> micro_batches;  // of all of them, in their order
  ShareSizes sizes;                       // of all shares of the turn, on any rank
  bool adds = false;                      // whether gradients are added to those of earlier turns

  bool is_whole(const MicroBatch& micro_batch) const {
    return micro_batch.begin == 0 && micro_batch.end == shares[micro_batch.share].size();
  }
  /// Whether it is the last one of its share.
  bool is_last(const MicroBatch& micro_batch) const {
    return micro_batch.end == shares[micro_batch.share].size();
  }
};

/// The rounds in which a batch of `samples` is trained, one after another.
std::vector<StageRound> training_rounds(std::size_t samples, const RoundOptions& options);

/// The round in which `samples` are evaluated, as one share, where the set's first share is.
StageRound evaluation_round(std::size_t samples, const RoundOptions& options);

}  // namespace sweep::cuda
