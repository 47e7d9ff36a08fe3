#include "core/kernels/cuda/batch_feed.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <numeric>

#include "core/base/error.h"

namespace sweep::cuda {
namespace {

constexpr std::size_t kAlignment = 256;
constexpr std::size_t kMaxResidentSets = 3;  // training, validation and test may be sets of their step
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

std::size_t align(std::size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

}  // namespace

BatchFeed::BatchFeed(std::size_t batch_size, std::size_t sample_bytes, Placement placement)
    : max_steps_(steps_from_environment()),
      batch_size_(batch_size),
      sample_bytes_(sample_bytes),
      stride_(kRowsOffset + align(batch_size * sizeof(std::uint32_t))),
      placement_(placement),
      device_(static_cast<std::size_t>(max_steps_) * stride_, "the row numbers of batches") {
  for (PinnedMemory& memory : host_) memory = PinnedMemory(device_.size());
}

void BatchFeed::add(Stream& stream, const Batch& batch, StepInput input) {
  // The last copy from this buffer was two upload() ago; it is nearly always done.
  if (steps_ == 0) sent_[host_turn_].wait();
  std::byte* step = host_[host_turn_].data() + static_cast<std::size_t>(steps_) * stride_;
  auto* rows = reinterpret_cast<std::uint32_t*>(step + kRowsOffset);
  if (make_resident(stream, batch.set)) {
    input.pixels = sets_.front().pixels.data();
    input.labels = sets_.front().labels.data();
    std::copy(batch.rows.begin(), batch.rows.end(), rows);
  } else {
    stage(stream, batch, input, rows);
  }
  std::memcpy(step, &input, sizeof input);
  ++steps_;
}

StepInputs BatchFeed::upload(Stream& stream) {
  // The steps that follow on `stream` read the staging buffer that copies_ is filling.
  if (in_use_ != nullptr) stream.wait_for(in_use_->copied);
  stream.upload_pinned(device_.data(), host_[host_turn_].data(), static_cast<std::size_t>(steps_) * stride_);
  stream.record(sent_[host_turn_]);
  host_turn_ = 1 - host_turn_;
  steps_ = 0;
  return inputs();
}

StepInputs BatchFeed::inputs() const { return {device_.data(), stride_, kRowsOffset}; }

bool BatchFeed::is_resident(const std::shared_ptr<const ImageSet>& set) const {
  return std::any_of(sets_.begin(), sets_.end(), [&](const ResidentSet& known) { return known.set == set; });
}

bool BatchFeed::should_be_resident(const ImageSet& set) const {
  if (placement_ != Placement::kAuto) return placement_ == Placement::kDevice;
  // The rest of the memory is for graphs, libraries and other processes.
  const std::size_t bytes = set.pixels.size() + set.labels.size() * sizeof(std::int32_t);
  return bytes <= free_memory() / 10 * 9;
}

bool BatchFeed::make_resident(Stream& stream, const std::shared_ptr<const ImageSet>& set) {
  if (set == nullptr || placement_ == Placement::kHost) return false;
  const auto found =
      std::find_if(sets_.begin(), sets_.end(), [&](const ResidentSet& known) { return known.set == set; });
  if (found != sets_.end()) {
    sets_.splice(sets_.begin(), sets_, found);  // keeps the list in order of use
    return true;
  }
  // Decided once per set: free memory changes, but a set must not move in the middle of a training.
  not_resident_.remove_if([](const auto& known) { return known.expired(); });
  for (const auto& known : not_resident_) {
    if (known.lock() == set) return false;
  }
  if (sets_.size() >= kMaxResidentSets) {
    stream.wait();  // steps on the stream may still read the set that goes
    sets_.pop_back();
  }
  if (!should_be_resident(*set)) {
    not_resident_.push_back(set);
    return false;
  }
  const std::string purpose = "the data set (\"dataset.placement\" \"host\" needs none for it)";
  ResidentSet resident{set, Array<std::uint8_t>(set->pixels.size(), purpose),
                       Array<std::int32_t>(set->labels.size(), purpose)};
  stream.upload(resident.pixels.data(), set->pixels.data(), set->pixels.size());
  stream.upload(resident.labels.data(), set->labels.data(), set->labels.size() * sizeof(std::int32_t));
  sets_.push_front(std::move(resident));
  return true;
}

void BatchFeed::allocate_staging() {
  const std::size_t bytes = align(batch_size_ * sample_bytes_) + batch_size_ * sizeof(std::int32_t);
  for (Staging& staging : staging_) {
    if (staging.host.bytes() > 0) continue;
    staging.host = PinnedMemory(bytes);
    staging.device = Array<std::byte>(bytes, "the samples of a batch of " + std::to_string(batch_size_));
  }
}

void BatchFeed::stage(Stream& stream, const Batch& batch, StepInput& input, std::uint32_t* rows) {
  // The step that reads the other buffer was put on the stream before this add(), so `used` stands for it.
  if (in_use_ != nullptr) stream.record(in_use_->used);
  Staging& staging = staging_[staging_turn_];
  staging_turn_ = 1 - staging_turn_;
  allocate_staging();
  const std::size_t labels_offset = align(batch_size_ * sample_bytes_);
  staging.copied.wait();  // the host may overwrite the pinned memory now
  auto* labels = reinterpret_cast<std::int32_t*>(staging.host.data() + labels_offset);
  for (std::size_t i = 0; i < batch.size();) {
    // Consecutive rows are copied together. A batch that a loader's worker has gathered is one such run.
    std::size_t end = i + 1;
    while (end < batch.size() && batch.rows[end] == batch.rows[end - 1] + 1) ++end;
    std::memcpy(staging.host.data() + i * sample_bytes_, batch.pixels.data() + batch.rows[i] * sample_bytes_,
                (end - i) * sample_bytes_);
    for (; i < end; ++i) labels[i] = batch.labels[batch.rows[i]];
  }
  std::iota(rows, rows + batch.size(), 0u);
  // Two orders hold the buffers together: this copy waits on the device for the step that reads the old
  // samples, and upload() lets the step that reads the new ones wait for the copy. The host waits for
  // neither.
  copies_.wait_for(staging.used);
  copies_.upload_pinned(staging.device.data(), staging.host.data(), batch.size() * sample_bytes_);
  copies_.upload_pinned(staging.device.data() + labels_offset, staging.host.data() + labels_offset,
                        batch.size() * sizeof(std::int32_t));
  copies_.record(staging.copied);
  input.pixels = reinterpret_cast<const std::uint8_t*>(staging.device.data());
  input.labels = reinterpret_cast<const std::int32_t*>(staging.device.data() + labels_offset);
  in_use_ = &staging;
}

}  // namespace sweep::cuda
