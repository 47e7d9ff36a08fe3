// Brings batches to the device. A set that a batch names whole stays there, and only its row numbers are
// copied for each batch; samples of any other batch are copied through two buffers in turns, one of which is
// filled while the device still works with the other.
#pragma once

#include <list>
#include <memory>

#include "core/data/data_loader.h"
#include "core/kernels/cuda/program.h"
#include "core/kernels/cuda/runtime.h"

namespace sweep::cuda {

/// The inputs of up to kSteps steps, collected on the host and copied together.
class BatchFeed {
 public:
  static constexpr int kSteps = 16;

  BatchFeed(std::size_t batch_size, std::size_t sample_bytes);

  /// Whether the batch's pixels stay on the device, so that several such steps can be collected.
  static bool is_resident(const Batch& batch) { return batch.set != nullptr; }

  /// Adds a step: its samples, and what else `input` says (pixels and labels excepted). At most kSteps
  /// between two send(), and only one if the batch is not resident.
  void add(Stream& stream, const Batch& batch, StepInput input);
  int steps() const { return steps_; }

  /// Puts the copies on the stream and starts anew. Returns where the steps' inputs will be: always in the
  /// same place.
  StepInputs send(Stream& stream);

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

  const ResidentSet& resident(Stream& stream, const Batch& batch);
  void carry(Stream& stream, const Batch& batch, StepInput& input, std::uint32_t* rows);

  const std::size_t batch_size_, sample_bytes_, stride_;
  std::list<ResidentSet> sets_;  // the last used first
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
