// Brings batches to the device. A set that a batch names whole stays there, unless it is too large or is to
// stay on the host, and only its row numbers are copied for each batch; samples of any other batch are copied
// through two buffers in turns, one of which is filled while the device still works with the other.
#pragma once

#include <list>
#include <memory>

#include "core/data/data_loader.h"
#include "core/engine/engine.h"
#include "core/kernels/cuda/program.h"
#include "core/kernels/cuda/runtime/runtime.h"

namespace sweep::cuda {

/// The inputs of up to steps_at_once() steps, collected on the host and copied together.
class BatchFeed {
 public:
  /// Throws ConfigError if SWEEP_CUDA_STEPS, by which benchmarks measure other numbers of steps at once, is
  /// not 1, 2, 4, … 64. It changes no result.
  BatchFeed(std::size_t batch_size, std::size_t sample_bytes, Placement placement);

  /// Whether the set's samples stay on the device, so that several steps with them can be collected. Copies
  /// them there if they are not. False for null. Throws DeviceError if they have to be there and do not fit.
  /// Only between send() and add(), unless it has() the set: another may have to go.
  bool keeps(Stream& stream, const std::shared_ptr<const ImageSet>& set);
  /// Whether they are there now.
  bool has(const std::shared_ptr<const ImageSet>& set) const;

  /// Takes the memory that samples of other batches are copied through, which the first of them would take.
  void prepare_carriers();

  /// Adds a step: its samples, and what else `input` says (pixels and labels excepted). At most
  /// steps_at_once() between two send(), and only one if the batch is not resident.
  void add(Stream& stream, const Batch& batch, StepInput input);
  int steps() const { return steps_; }
  int steps_at_once() const { return steps_at_once_; }

  /// Puts the copies on the stream and starts anew. Returns inputs().
  StepInputs send(Stream& stream);

  /// Where the steps' inputs are after send(): always in the same place.
  StepInputs inputs() const;

 private:
  // The pixels and labels of a whole set.
  struct ResidentSet {
    std::shared_ptr<const ImageSet> set;  // so that no other set gets its address
    Array<std::uint8_t> pixels;
    Array<std::int32_t> labels;
  };
  // Samples of one batch.
  struct Carrier {
    PinnedMemory host;
    Array<std::byte> device;
    Event copied, used;
  };

  bool is_to_be_kept(const ImageSet& set) const;
  void carry(Stream& stream, const Batch& batch, StepInput& input, std::uint32_t* rows);

  const int steps_at_once_;
  const std::size_t batch_size_, sample_bytes_, stride_;
  const Placement placement_;
  std::list<ResidentSet> sets_;                           // the last used first
  std::list<std::weak_ptr<const ImageSet>> left_behind_;  // did not fit when they were first needed
  // Two of each: the host fills one while the device may still read the other.
  PinnedMemory host_[2];
  Event sent_[2];
  Array<std::byte> device_;
  Carrier carriers_[2];
  Stream copies_;
  int turn_ = 0, carrier_turn_ = 0, steps_ = 0;
  Carrier* in_use_ = nullptr;  // by the step that was added
};

}  // namespace sweep::cuda
