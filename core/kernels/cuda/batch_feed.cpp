#include "core/kernels/cuda/batch_feed.h"

#include <algorithm>
#include <cstring>
#include <numeric>

namespace sweep::cuda {
namespace {

constexpr std::size_t kAlignment = 256;
constexpr std::size_t kSetsKept = 3;  // training, validation and test may be sets of their own
constexpr std::size_t kRowsOffset = (sizeof(StepInput) + kAlignment - 1) / kAlignment * kAlignment;

std::size_t rounded(std::size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

}  // namespace

BatchFeed::BatchFeed(std::size_t batch_size, std::size_t sample_bytes)
    : batch_size_(batch_size),
      sample_bytes_(sample_bytes),
      stride_(kRowsOffset + rounded(batch_size * sizeof(std::uint32_t))),
      device_(kSteps * stride_, "the row numbers of batches") {
  for (PinnedMemory& memory : host_) memory = PinnedMemory(kSteps * stride_);
}

void BatchFeed::add(Stream& stream, const Batch& batch, StepInput input) {
  if (steps_ == 0) sent_[turn_].wait();  // the copy of this buffer's last content
  std::byte* own = host_[turn_].data() + static_cast<std::size_t>(steps_) * stride_;
  auto* rows = reinterpret_cast<std::uint32_t*>(own + kRowsOffset);
  if (is_resident(batch)) {
    const ResidentSet& set = resident(stream, batch);
    input.pixels = set.pixels.data();
    input.labels = set.labels.data();
    std::copy(batch.rows.begin(), batch.rows.end(), rows);
  } else {
    carry(stream, batch, input, rows);
  }
  std::memcpy(own, &input, sizeof input);
  ++steps_;
}

StepInputs BatchFeed::send(Stream& stream) {
  if (in_use_ != nullptr) stream.wait_for(in_use_->copied);
  stream.upload_pinned(device_.data(), host_[turn_].data(), static_cast<std::size_t>(steps_) * stride_);
  stream.record(sent_[turn_]);
  turn_ = 1 - turn_;
  steps_ = 0;
  return {device_.data(), stride_, kRowsOffset};
}

const BatchFeed::ResidentSet& BatchFeed::resident(Stream& stream, const Batch& batch) {
  const auto found =
      std::find_if(sets_.begin(), sets_.end(), [&](const ResidentSet& set) { return set.set == batch.set; });
  if (found != sets_.end()) {
    sets_.splice(sets_.begin(), sets_, found);
    return sets_.front();
  }
  if (sets_.size() >= kSetsKept) {
    stream.wait();  // Steps that read it may still be waiting.
    sets_.pop_back();
  }
  ResidentSet set{batch.set, Array<std::uint8_t>(batch.pixels.size(), "the data set"),
                  Array<std::int32_t>(batch.labels.size(), "the data set's labels")};
  stream.upload(set.pixels.data(), batch.pixels.data(), batch.pixels.size());
  stream.upload(set.labels.data(), batch.labels.data(), batch.labels.size_bytes());
  sets_.push_front(std::move(set));
  return sets_.front();
}

void BatchFeed::carry(Stream& stream, const Batch& batch, StepInput& input, std::uint32_t* rows) {
  if (in_use_ != nullptr) stream.record(in_use_->used);  // The steps before are all on the stream by now.
  Carrier& carrier = carriers_[carrier_turn_];
  carrier_turn_ = 1 - carrier_turn_;
  const std::size_t labels_offset = rounded(batch_size_ * sample_bytes_);
  if (carrier.host.bytes() == 0) {
    const std::size_t bytes = labels_offset + batch_size_ * sizeof(std::int32_t);
    carrier.host = PinnedMemory(bytes);
    carrier.device = Array<std::byte>(bytes, "the samples of a batch of " + std::to_string(batch_size_));
  }
  carrier.copied.wait();  // The copy of its last content is done, so it may be filled again.
  auto* labels = reinterpret_cast<std::int32_t*>(carrier.host.data() + labels_offset);
  for (std::size_t i = 0; i < batch.size(); ++i) {
    std::memcpy(carrier.host.data() + i * sample_bytes_, batch.pixels.data() + batch.rows[i] * sample_bytes_,
                sample_bytes_);
    labels[i] = batch.labels[batch.rows[i]];
  }
  std::iota(rows, rows + batch.size(), 0u);
  copies_.wait_for(carrier.used);
  copies_.upload_pinned(carrier.device.data(), carrier.host.data(), batch.size() * sample_bytes_);
  copies_.upload_pinned(carrier.device.data() + labels_offset, carrier.host.data() + labels_offset,
                        batch.size() * sizeof(std::int32_t));
  copies_.record(carrier.copied);
  input.pixels = reinterpret_cast<const std::uint8_t*>(carrier.device.data());
  input.labels = reinterpret_cast<const std::int32_t*>(carrier.device.data() + labels_offset);
  in_use_ = &carrier;
}

}  // namespace sweep::cuda
