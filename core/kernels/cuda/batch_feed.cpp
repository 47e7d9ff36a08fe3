#include "core/kernels/cuda/batch_feed.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <numeric>

#include "core/base/error.h"

namespace sweep::cuda {
namespace {

constexpr std::size_t kAlignment = 256;
constexpr std::size_t kSetsKept = 3;  // training, validation and test may be sets of their own
constexpr std::size_t kRowsOffset = (sizeof(StepInput) + kAlignment - 1) / kAlignment * kAlignment;

int steps_from_environment() {
  constexpr int kSteps = 16;
  const char* text = std::getenv("SWEEP_CUDA_STEPS");
  if (text == nullptr) return kSteps;
  for (int steps = 1; steps <= 64; steps *= 2) {
    if (std::to_string(steps) == text) return steps;
  }
  throw ConfigError("SWEEP_CUDA_STEPS: got \"" + std::string(text) + "\", want 1, 2, 4, 8, 16, 32 or 64");
}

std::size_t rounded(std::size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

}  // namespace

BatchFeed::BatchFeed(std::size_t batch_size, std::size_t sample_bytes, Placement placement)
    : steps_at_once_(steps_from_environment()),
      batch_size_(batch_size),
      sample_bytes_(sample_bytes),
      stride_(kRowsOffset + rounded(batch_size * sizeof(std::uint32_t))),
      placement_(placement),
      device_(static_cast<std::size_t>(steps_at_once_) * stride_, "the row numbers of batches") {
  for (PinnedMemory& memory : host_) memory = PinnedMemory(device_.size());
}

void BatchFeed::add(Stream& stream, const Batch& batch, StepInput input) {
  if (steps_ == 0) sent_[turn_].wait();  // the copy of this buffer's last content
  std::byte* own = host_[turn_].data() + static_cast<std::size_t>(steps_) * stride_;
  auto* rows = reinterpret_cast<std::uint32_t*>(own + kRowsOffset);
  if (keeps(stream, batch.set)) {
    input.pixels = sets_.front().pixels.data();
    input.labels = sets_.front().labels.data();
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
  return inputs();
}

StepInputs BatchFeed::inputs() const { return {device_.data(), stride_, kRowsOffset}; }

bool BatchFeed::has(const std::shared_ptr<const ImageSet>& set) const {
  return std::any_of(sets_.begin(), sets_.end(), [&](const ResidentSet& known) { return known.set == set; });
}

bool BatchFeed::is_to_be_kept(const ImageSet& set) const {
  if (placement_ != Placement::kAuto) return placement_ == Placement::kDevice;
  // What is left is for graphs, for libraries and for who else uses the device.
  const std::size_t bytes = set.pixels.size() + set.labels.size() * sizeof(std::int32_t);
  return bytes <= free_memory() / 10 * 9;
}

bool BatchFeed::keeps(Stream& stream, const std::shared_ptr<const ImageSet>& set) {
  if (set == nullptr || placement_ == Placement::kHost) return false;
  const auto found =
      std::find_if(sets_.begin(), sets_.end(), [&](const ResidentSet& known) { return known.set == set; });
  if (found != sets_.end()) {
    sets_.splice(sets_.begin(), sets_, found);  // The last used comes first.
    return true;
  }
  // Asked once only, so that a set does not change its place in the midst of a training.
  left_behind_.remove_if([](const auto& known) { return known.expired(); });
  for (const auto& known : left_behind_) {
    if (known.lock() == set) return false;
  }
  if (sets_.size() >= kSetsKept) {
    stream.wait();  // Steps that read it may still be waiting.
    sets_.pop_back();
  }
  if (!is_to_be_kept(*set)) {
    left_behind_.push_back(set);
    return false;
  }
  const std::string purpose = "the data set (\"dataset.placement\" \"host\" needs none for it)";
  ResidentSet kept{set, Array<std::uint8_t>(set->pixels.size(), purpose),
                   Array<std::int32_t>(set->labels.size(), purpose)};
  stream.upload(kept.pixels.data(), set->pixels.data(), set->pixels.size());
  stream.upload(kept.labels.data(), set->labels.data(), set->labels.size() * sizeof(std::int32_t));
  sets_.push_front(std::move(kept));
  return true;
}

void BatchFeed::prepare_carriers() {
  const std::size_t bytes = rounded(batch_size_ * sample_bytes_) + batch_size_ * sizeof(std::int32_t);
  for (Carrier& carrier : carriers_) {
    if (carrier.host.bytes() > 0) continue;
    carrier.host = PinnedMemory(bytes);
    carrier.device = Array<std::byte>(bytes, "the samples of a batch of " + std::to_string(batch_size_));
  }
}

void BatchFeed::carry(Stream& stream, const Batch& batch, StepInput& input, std::uint32_t* rows) {
  if (in_use_ != nullptr) stream.record(in_use_->used);  // The steps before are all on the stream by now.
  Carrier& carrier = carriers_[carrier_turn_];
  carrier_turn_ = 1 - carrier_turn_;
  prepare_carriers();
  const std::size_t labels_offset = rounded(batch_size_ * sample_bytes_);
  carrier.copied.wait();  // The copy of its last content is done, so it may be filled again.
  auto* labels = reinterpret_cast<std::int32_t*>(carrier.host.data() + labels_offset);
  for (std::size_t i = 0; i < batch.size();) {
    // Rows that follow each other are copied at once: all of a batch that a worker gathered.
    std::size_t end = i + 1;
    while (end < batch.size() && batch.rows[end] == batch.rows[end - 1] + 1) ++end;
    std::memcpy(carrier.host.data() + i * sample_bytes_, batch.pixels.data() + batch.rows[i] * sample_bytes_,
                (end - i) * sample_bytes_);
    for (; i < end; ++i) labels[i] = batch.labels[batch.rows[i]];
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
