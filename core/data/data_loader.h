// Makes batches of a data set, in file order or shuffled, in the calling thread or ahead in workers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/data/augment.h"
#include "core/data/tensor_dataset.h"

namespace sweep {

/// Changes of a batch's images that are left to the engine.
struct BatchAugment {
  std::span<const AugmentStep> steps;      // empty: the images need no change
  std::span<const std::uint32_t> samples;  // [samples of the batch]: AugmentKey::sample of each
  std::uint32_t epoch = 0;
};

/// One batch. Its sample i is number indices[i] in `samples` and in `targets`.
/// Without workers and augmentation, or with the set on a device, the spans are the whole set's and `indices`
/// select from them; else they are a contiguous copy and indices are 0, 1, 2, … Valid until the
/// next call of next(), begin_epoch() or set_on_device() of the loader that made it.
struct Batch {
  SampleSpan samples;
  TargetSpan targets;
  std::span<const std::uint32_t> indices;  // [samples of the batch], into samples and targets
  /// The set if the spans are those of a whole set, otherwise null. A set never changes, so an engine that
  /// has copied it to its device needs only `indices`.
  std::shared_ptr<const TensorDataset> set = nullptr;
  BatchAugment augment = {};
  std::size_t size() const { return indices.size(); }

  /// The spans by type. Throw std::bad_variant_access if they hold the other one.
  std::span<const std::uint8_t> pixels() const { return std::get<0>(samples); }
  std::span<const float> floats() const { return std::get<1>(samples); }
  std::span<const std::int32_t> labels() const { return std::get<0>(targets); }
  std::span<const float> numbers() const { return std::get<1>(targets); }
};

struct LoaderOptions {
  std::size_t batch_size = 1;  // samples, >= 1; the last batch of an epoch may be shorter
  bool shuffle = false;        // a new order in every epoch, see shuffled_order.h
  int num_workers = 0;         // >= 0; 0: next() makes the batch itself; n: n threads make batches ahead
  std::uint64_t seed = 0;      // of the order
  std::uint32_t repeat = 0;    // of the order: distinguishes repetitions of a run with the same seed
  /// Changes of each image, keyed by seed, repeat, epoch and the sample's place in the subset's order.
  /// Batches are then copies, as with workers.
  std::vector<AugmentStep> augment{};
};

/// Bytes that a loader of `count` samples of `sample_bytes` bytes allocates: the order of the samples, the
/// next epoch's, which is drawn ahead, and the batches that it copies.
std::size_t loader_memory(std::size_t count, std::size_t sample_bytes, const LoaderOptions& options);

/// Iterates over the batches of an epoch, like torch.utils.data.DataLoader. Batches come in the same order
/// for every number of workers. Not thread-safe.
class DataLoader {
 public:
  /// Throws ConfigError if batch_size is 0, num_workers is negative, augment has more than
  /// kMaxAugmentSteps changes, samples to augment are not images or are smaller than a change's amount,
  /// `samples` reach beyond their set, or the set has 2^32 samples or more.
  DataLoader(Subset samples, LoaderOptions options);
  ~DataLoader();
  DataLoader(const DataLoader&) = delete;
  DataLoader& operator=(const DataLoader&) = delete;

  const Subset& samples() const;
  const LoaderOptions& options() const;
  /// Batches of an epoch, the shorter last one included.
  std::size_t batch_count() const;

  /// Whether an engine that was made with these options holds the samples on its device, see
  /// Engine::prepare(). Then there are no workers, batches are the whole set's, and Batch::augment says how
  /// to change them. An epoch that has begun is abandoned. Changes no result.
  void set_on_device(bool on_device);

  /// Starts epoch `epoch` (from 0) at batch 0. The previous epoch need not be finished. Throws ConfigError if
  /// the threads of the workers cannot be started.
  void begin_epoch(std::uint32_t epoch);

  /// Returns the next batch, or nullptr after the last one and before the first begin_epoch(). If it throws,
  /// for want of memory, the epoch can only be begun anew: with workers it throws again.
  const Batch* next();

  /// Seconds that next() has taken since begin_epoch(), making batches or waiting for workers.
  double wait_seconds() const;

 private:
  class Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace sweep
