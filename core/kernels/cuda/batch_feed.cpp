#include "core/kernels/cuda/batch_feed.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <numeric>

#include "core/base/error.h"
#include "core/base/mapped_file.h"
#include "core/kernels/cuda/runtime/memory_plan.h"

namespace sweep::cuda {
namespace {

constexpr std::size_t kMaxResidentSets = 3;  // training, validation and test may be sets of their step
constexpr std::size_t kRowsOffset = aligned(sizeof(StepInput));

int steps_from_environment() {
  constexpr int kSteps = 16;
  const char* text = std::getenv("SWEEP_CUDA_STEPS");
  if (text == nullptr) return kSteps;
  for (int steps = 1; steps <= 64; steps *= 2) {
    if (std::to_string(steps) == text) return steps;
  }
  throw ConfigError("SWEEP_CUDA_STEPS: got \"" + std::string(text) + "\", want 1, 2, 4, 8, 16, 32 or 64");
}

// Lets the pointers for the types of `batch` point to device memory.
void point_to(StepInput& input, const Batch& batch, const std::byte* samples, const std::byte* targets) {
  if (std::holds_alternative<std::span<const float>>(batch.samples)) {
    input.floats = reinterpret_cast<const float*>(samples);
  } else {
    input.pixels = reinterpret_cast<const std::uint8_t*>(samples);
  }
  if (is_regression(batch.targets)) {
    input.numbers = reinterpret_cast<const float*>(targets);
  } else {
    input.labels = reinterpret_cast<const std::int32_t*>(targets);
  }
}

// Copies rows [from, from + count) of `all`, each of `bytes` bytes, to row `to` of the staging buffer.
void copy_rows(std::byte* staging, std::size_t to, std::span<const std::byte> all, std::size_t from,
               std::size_t count, std::size_t bytes) {
  if (bytes == 0) return;  // not fed
  std::memcpy(staging + to * bytes, all.data() + from * bytes, count * bytes);
}

}  // namespace

BatchFeed::BatchFeed(std::size_t batch_size, std::size_t sample_values, Placement placement, bool augments,
                     FedArrays fed)
    : max_steps_(steps_from_environment()),
      batch_size_(batch_size),
      sample_values_(sample_values),
      numbers_offset_(kRowsOffset + aligned(batch_size * sizeof(std::uint32_t))),
      stride_(numbers_offset_ + (augments ? aligned(batch_size * sizeof(std::uint32_t)) : 0)),
      placement_(placement),
      fed_(fed),
      device_(static_cast<std::size_t>(max_steps_) * stride_, "the row numbers of batches") {
  for (PinnedMemory& memory : host_) memory = PinnedMemory(device_.size());
}

void BatchFeed::add(Stream& stream, const Batch& batch, StepInput input) {
  // The last copy from this buffer was two upload() ago; it is nearly always done.
  if (steps_ == 0) wait_(sent_[host_turn_]);
  std::byte* step = host_[host_turn_].data() + static_cast<std::size_t>(steps_) * stride_;
  auto* rows = reinterpret_cast<std::uint32_t*>(step + kRowsOffset);
  if (make_resident(stream, batch.set)) {
    point_to(input, batch, sets_.front().samples.data(), sets_.front().targets.data());
    std::copy(batch.indices.begin(), batch.indices.end(), rows);
  } else {
    stage(stream, batch, input, rows);
  }
  if (!batch.augment.steps.empty()) {
    input.epoch = batch.augment.epoch;
    std::ranges::copy(batch.augment.samples, reinterpret_cast<std::uint32_t*>(step + numbers_offset_));
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

StepInputs BatchFeed::inputs() const { return {device_.data(), stride_, kRowsOffset, numbers_offset_}; }

bool BatchFeed::is_resident(const std::shared_ptr<const TensorDataset>& set) const {
  return std::any_of(sets_.begin(), sets_.end(), [&](const ResidentSet& known) { return known.set == set; });
}

bool BatchFeed::allocate(ResidentSet& set, std::size_t samples, std::size_t targets) const {
  // The rest of the memory is for graphs, libraries and other processes.
  if (placement_ == Placement::kAuto && samples + targets > free_memory() / 10 * 9) return false;
  const std::string purpose = "the data set (\"dataset.placement\" \"host\" needs none for it)";
  try {
    set.samples = Array<std::byte>(samples, purpose);
    set.targets = Array<std::byte>(targets, purpose);
  } catch (const DeviceError&) {
    if (placement_ == Placement::kDevice) throw;
    return false;  // Another process has taken the memory meanwhile.
  }
  return true;
}

bool BatchFeed::make_resident(Stream& stream, const std::shared_ptr<const TensorDataset>& set) {
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
  const std::span<const std::byte> none, samples = fed_.samples ? bytes_of(set->samples) : none,
                                         targets = fed_.targets ? bytes_of(set->targets) : none;
  ResidentSet resident{set, {}, {}};
  if (!allocate(resident, samples.size(), targets.size())) {
    not_resident_.push_back(set);
    return false;
  }
  // `file`: that the values lie in, or null. One that is larger than memory is read in large pieces.
  const auto copy = [&](std::span<const std::byte> values, const Array<std::byte>& to,
                        const MappedFile* file = nullptr) {
    constexpr std::size_t kPieceBytes = std::size_t{64} << 20;
    for (std::size_t begin = 0; begin < values.size(); begin += kPieceBytes) {
      const auto piece = values.subspan(begin, std::min(kPieceBytes, values.size() - begin));
      if (file != nullptr)
        file->will_need({reinterpret_cast<const std::uint8_t*>(piece.data()), piece.size()});
      stream.upload(to.data() + begin, piece.data(), piece.size());
    }
  };
  copy(samples, resident.samples, set->file.get());
  copy(targets, resident.targets);
  sets_.push_front(std::move(resident));
  return true;
}

BatchFeed::RowBytes BatchFeed::row_bytes(const SampleSpan& samples, const TargetSpan& targets) const {
  const std::size_t rows = value_count(samples) / std::max<std::size_t>(sample_values_, 1);
  return {fed_.samples ? sample_values_ * value_bytes(samples) : 0,
          fed_.targets && rows > 0 ? bytes_of(targets).size() / rows : 0};
}

std::size_t BatchFeed::targets_offset(const RowBytes& bytes) const {
  return aligned(batch_size_ * bytes.sample);
}

void BatchFeed::allocate_staging(Stream& stream, const TensorDataset& set) {
  allocate_staging(stream, row_bytes(view(set.samples), view(set.targets)));
}

void BatchFeed::allocate_staging(Stream& stream, const Batch& batch) {
  allocate_staging(stream, row_bytes(batch.samples, batch.targets));
}

void BatchFeed::allocate_staging(Stream& stream, const RowBytes& row) {
  const std::size_t bytes = targets_offset(row) + batch_size_ * row.targets;
  for (Staging& staging : staging_) {
    if (staging.host.bytes() >= bytes) continue;
    if (staging.host.bytes() >
        0) {  // For samples of a smaller type: steps on the stream may still read them.
      staging.copied.wait();
      stream.wait();
    }
    // In this order, because the size of `host` tells whether there are both.
    staging.device = Array<std::byte>(bytes, "the samples of a batch of " + std::to_string(batch_size_));
    staging.host = PinnedMemory(bytes);
  }
}

void BatchFeed::stage(Stream& stream, const Batch& batch, StepInput& input, std::uint32_t* rows) {
  // The step that reads the other buffer was put on the stream before this add(), so `used` stands for it.
  if (in_use_ != nullptr) stream.record(in_use_->used);
  const RowBytes bytes = row_bytes(batch.samples, batch.targets);
  allocate_staging(stream, bytes);
  Staging& staging = staging_[staging_turn_];
  staging_turn_ = 1 - staging_turn_;
  const std::size_t offset = targets_offset(bytes);
  wait_(staging.copied);  // the host may overwrite the pinned memory now
  const auto samples = bytes_of(batch.samples), targets = bytes_of(batch.targets);
  for (std::size_t i = 0; i < batch.size();) {
    // Consecutive rows are copied together. A batch that a loader's worker has gathered is one such run.
    std::size_t end = i + 1;
    while (end < batch.size() && batch.indices[end] == batch.indices[end - 1] + 1) ++end;
    copy_rows(staging.host.data(), i, samples, batch.indices[i], end - i, bytes.sample);
    copy_rows(staging.host.data() + offset, i, targets, batch.indices[i], end - i, bytes.targets);
    i = end;
  }
  std::iota(rows, rows + batch.size(), 0u);
  // Two orders hold the buffers together: this copy waits on the device for the step that reads the old
  // samples, and upload() lets the step that reads the new ones wait for the copy. The host waits for
  // neither.
  copies_.wait_for(staging.used);
  copies_.upload_pinned(staging.device.data(), staging.host.data(), batch.size() * bytes.sample);
  copies_.upload_pinned(staging.device.data() + offset, staging.host.data() + offset,
                        batch.size() * bytes.targets);
  copies_.record(staging.copied);
  point_to(input, batch, staging.device.data(), staging.device.data() + offset);
  in_use_ = &staging;
}

}  // namespace sweep::cuda
