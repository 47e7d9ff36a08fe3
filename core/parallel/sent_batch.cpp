#include "core/parallel/sent_batch.h"

#include <algorithm>
#include <cstring>
#include <numeric>

namespace sweep {
namespace {

// Copies samples [begin, end) of the batch from an array of its set to their places in `to`, which has room
// for the whole batch.
void pack(const Batch& batch, const auto& array, std::size_t begin, std::size_t end,
          std::vector<std::byte>& to) {
  const std::byte* from = std::visit([](const auto& values) { return std::as_bytes(values).data(); }, array);
  const std::size_t bytes = to.size() / batch.size();
  for (std::size_t i = begin; i < end; ++i)
    std::memcpy(to.data() + i * bytes, from + batch.indices[i] * bytes, bytes);
}

template <class T>
std::span<const T> values_of(const std::vector<std::byte>& array) {
  return {static_cast<const T*>(static_cast<const void*>(array.data())), array.size() / sizeof(T)};
}

}  // namespace

BatchKind kind_of(const Batch& batch) {
  return {batch.size(), batch.samples.index() == 1, batch.targets.index() == 1};
}

SentBatch::SentBatch(const Network& network)
    : values_(element_count(network.input())), outputs_(element_count(network.output())) {}

void SentBatch::scatter(Communicator& group, std::vector<std::byte>& array, std::size_t bytes,
                        const SampleShares& shares) {
  for (std::size_t turn = 0; turn < shares.turns(); ++turn) {
    begins_.clear();
    for (const std::size_t sample : shares.of(turn)) begins_.push_back(sample * bytes);
    group.scatter({array.data(), begins_});
  }
}

Batch SentBatch::exchange(Communicator& group, const BatchKind& kind, const SampleShares& shares,
                          const Batch* batch) {
  const std::size_t sample_bytes = values_ * (kind.has_float_samples ? sizeof(float) : 1);
  const std::size_t target_bytes = kind.has_number_targets ? outputs_ * sizeof(float) : sizeof(std::int32_t);
  samples_.resize(kind.samples * sample_bytes);
  targets_.resize(kind.samples * target_bytes);
  for (std::size_t turn = 0; batch != nullptr && turn < shares.turns(); ++turn) {
    // Those that are not rank 0's own.
    const std::size_t begin = shares.of(turn)[1], end = shares.of(turn).back();
    pack(*batch, batch->samples, begin, end, samples_);
    if (kind.has_number_targets) pack(*batch, batch->targets, begin, end, targets_);
  }
  scatter(group, samples_, sample_bytes, shares);
  if (kind.has_number_targets) {
    scatter(group, targets_, target_bytes, shares);
  } else {
    if (batch != nullptr) pack(*batch, batch->targets, 0, batch->size(), targets_);
    group.broadcast(targets_);
  }
  if (batch != nullptr) return *batch;
  rows_.resize(kind.samples);
  std::iota(rows_.begin(), rows_.end(), 0U);
  Batch received{.samples = {}, .targets = {}, .indices = rows_};
  if (kind.has_float_samples)
    received.samples = values_of<float>(samples_);
  else
    received.samples = values_of<std::uint8_t>(samples_);
  if (kind.has_number_targets)
    received.targets = values_of<float>(targets_);
  else
    received.targets = values_of<std::int32_t>(targets_);
  return received;
}

}  // namespace sweep
