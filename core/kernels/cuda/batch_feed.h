// Brings batches to the device.
//
// A data set that fits stays on the device (resident); a batch then costs one copy of its row numbers. The
// samples of other batches are copied through two staging buffers: the host fills one while the device still
// reads the other, and the copies run on their own stream during the training.
#pragma once

#include <functional>
#include <list>
#include <memory>
#include <utility>

#include "core/data/data_loader.h"
#include "core/engine/engine.h"
#include "core/kernels/cuda/program.h"
#include "core/kernels/cuda/runtime/runtime.h"

namespace sweep::cuda {

/// What a device needs of batches: one that has only some layers may need neither.
struct FedArrays {
  bool samples = true, targets = true;
};

/// Collects the inputs of up to max_steps() steps on the host and copies them together. Not thread-safe.
class BatchFeed {
 public:
  /// `sample_values`: of one sample. Throws ConfigError if SWEEP_CUDA_STEPS, with which benchmarks set
  /// max_steps(), is not 1, 2, 4, … 64. It changes no result.
  /// `augments`: batches may have changes to be made on the device, which depend on the samples' numbers.
  BatchFeed(std::size_t batch_size, std::size_t sample_values, Placement placement, bool augments,
            FedArrays fed = {});

  /// Makes `set` resident if it may be and fits; returns whether it is, so that several steps over it can be
  /// collected. False for nullptr. Unless is_resident(set), call it only between upload() and add(): it may
  /// evict the set that was used least recently. Throws DeviceError if the placement demands the device and
  /// the set does not fit.
  bool make_resident(Stream& stream, const std::shared_ptr<const TensorDataset>& set);
  bool is_resident(const std::shared_ptr<const TensorDataset>& set) const;

  /// Allocates the staging buffers for samples like these now instead of with the first batch that needs
  /// them.
  void allocate_staging(Stream& stream, const TensorDataset& set);
  void allocate_staging(Stream& stream, const Batch& batch);

  /// Adds a step over `batch`. `input` brings everything but samples and targets. At most max_steps() steps
  /// between two upload(), and only one if the batch's set is not resident.
  void add(Stream& stream, const Batch& batch, StepInput input);
  int steps() const { return steps_; }
  int max_steps() const { return max_steps_; }

  /// From now on add() calls `wait` where the host has to wait for a copy, which Event::wait() does without.
  void wait_by(std::function<void(const Event&)> wait) { wait_ = std::move(wait); }

  /// Puts the copies of the collected steps on `stream` and starts collecting anew. Returns inputs().
  StepInputs upload(Stream& stream);

  /// Where the inputs are after upload(): always the same memory, because graphs have its address.
  StepInputs inputs() const;

 private:
  struct ResidentSet {
    std::shared_ptr<const TensorDataset> set;  // held, so that no other set can get its address
    Array<std::byte> samples, targets;
  };
  // One batch: samples, then targets.
  struct Staging {
    PinnedMemory host;
    Array<std::byte> device;
    Event copied;  // host → device is done: the host may overwrite `host`
    Event used;    // the step that reads `device` is done: the next copy may overwrite it
  };

  // Bytes of a sample and of its targets.
  struct RowBytes {
    std::size_t sample, targets;
  };
  RowBytes row_bytes(const SampleSpan& samples, const TargetSpan& targets) const;
  std::size_t targets_offset(const RowBytes& bytes) const;
  void allocate_staging(Stream& stream, const RowBytes& bytes);
  /// Allocates so many bytes for a set. Returns false if it is to stay on the host.
  bool allocate(ResidentSet& set, std::size_t samples, std::size_t targets) const;
  void stage(Stream& stream, const Batch& batch, StepInput& input, std::uint32_t* rows);

  const int max_steps_;
  const std::size_t batch_size_, sample_values_;
  const std::size_t numbers_offset_;  // of the samples' numbers in one step's input, after the rows
  const std::size_t stride_;  // bytes of one step's input: StepInput, rows, and numbers if it augments
  const Placement placement_;
  const FedArrays fed_;
  std::list<ResidentSet> sets_;                                 // the most recently used first
  std::list<std::weak_ptr<const TensorDataset>> not_resident_;  // did not fit when they were first needed
  // Step inputs. The host fills one of the two pinned buffers while the copy of the other may still run.
  PinnedMemory host_[2];
  Event sent_[2];  // the copy of host_[i] is done
  Array<std::byte> device_;
  Staging staging_[2];
  Stream copies_;  // of the staging buffers
  std::function<void(const Event&)> wait_ = [](const Event& event) { event.wait(); };
  int host_turn_ = 0, staging_turn_ = 0, steps_ = 0;
  Staging* in_use_ = nullptr;  // what the last added step reads
};

}  // namespace sweep::cuda
