// Batches of a data set, in file order or shuffled, made in the training thread or ahead of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/data/dataset.h"

namespace sweep {

/// One batch. Sample i is the sample_bytes bytes at pixels[rows[i] * sample_bytes] with labels[rows[i]]:
/// either rows of the whole set, or a copy that a worker gathered. Valid until the next call of the loader
/// that made it.
struct Batch {
  std::span<const std::uint8_t> pixels;
  std::span<const std::int32_t> labels;
  std::span<const std::uint32_t> rows;  // [samples in this batch]
  /// The set whose pixels and labels these are, all of them; null if they are the batch's own. A set never
  /// changes, so who has it need not read it again.
  std::shared_ptr<const ImageSet> set = nullptr;
  std::size_t size() const { return rows.size(); }
};

/// The order in which an epoch visits `count` samples: a uniformly random permutation that depends on (seed,
/// repeat, epoch, count) alone, so it is the same on every device and for every number of workers.
std::vector<std::uint32_t> shuffled_order(std::size_t count, std::uint64_t seed, std::uint32_t repeat,
                                          std::uint32_t epoch);

struct LoaderOptions {
  std::size_t batch_size = 1;  // >= 1; the last batch of an epoch may be shorter
  bool shuffle = false;
  int num_workers = 0;  // 0: next() prepares the batch itself; n: n threads prepare batches ahead
  std::uint64_t seed = 0;
  std::uint32_t repeat = 0;
};

/// Not thread-safe: one thread calls begin_epoch() and next().
class DataLoader {
 public:
  /// Throws ConfigError if batch_size is 0 or num_workers is negative.
  DataLoader(Samples samples, LoaderOptions options);
  ~DataLoader();
  DataLoader(const DataLoader&) = delete;
  DataLoader& operator=(const DataLoader&) = delete;

  const Samples& samples() const;
  const LoaderOptions& options() const;
  /// Batches in an epoch; the last may be short.
  std::size_t batch_count() const;

  /// Between epochs: as if options() had said so from the start. Throws as the constructor.
  void set_num_workers(int num_workers);

  /// Starts epoch `epoch` (from 0) at batch 0; a previous epoch may be left unfinished.
  void begin_epoch(std::uint32_t epoch);

  /// Returns the next batch in order, or nullptr after the last.
  const Batch* next();

  /// Seconds that the calling thread spent inside next() since begin_epoch(): preparing, or waiting for a
  /// worker.
  double wait_seconds() const;

 private:
  class Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace sweep
