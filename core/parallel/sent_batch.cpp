#include "core/parallel/sent_batch.h"

#include <algorithm>
#include <cstring>
#include <numeric>

namespace sweep {
namespace {

// Copies rows [begin, end) of the batch, `bytes` each, to their places in `to`.
void pack(const Batch& batch, const std::byte* from, std::size_t bytes, std::size_t begin, std::size_t end,
          std::vector<std::byte>& to) {
  to.resize(batch.size() * bytes);
  for (std::size_t i = begin; i < end; ++i)
    std::memcpy(to.data() + i * bytes, from + batch.indices[i] * bytes, bytes);
}

// Those that are not rank 0's own.
void pack(const Batch& batch, const std::byte* from, std::size_t bytes, const SampleShares& shares,
          std::vector<std::byte>& to) {
  for (std::size_t turn = 0; turn < shares.turns(); ++turn)
    pack(batch, from, bytes, shares.of(turn)[1], shares.of(turn).back(), to);
}

template <class T>
std::span<const T> values_of(const std::vector<std::byte>& array) {
  return {static_cast<const T*>(static_cast<const void*>(array.data())), array.size() / sizeof(T)};
}

}  // namespace

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

void SentBatch::send(Communicator& group, const Batch& batch, const SampleShares& shares) {
  Kinds kinds{batch.samples.index() == 1, batch.targets.index() == 1};
  group.broadcast(bytes_of_value(kinds));
  const auto data_of = [](const auto& array) {
    return std::visit([](const auto& values) { return std::as_bytes(values).data(); }, array);
  };
  const std::size_t sample_bytes = values_ * (kinds.float_samples ? sizeof(float) : 1);
  pack(batch, data_of(batch.samples), sample_bytes, shares, samples_);
  scatter(group, samples_, sample_bytes, shares);
  if (kinds.number_targets) {
    pack(batch, data_of(batch.targets), outputs_ * sizeof(float), shares, targets_);
    scatter(group, targets_, outputs_ * sizeof(float), shares);
  } else {
    pack(batch, data_of(batch.targets), sizeof(std::int32_t), 0, batch.size(), targets_);
    group.broadcast(targets_);
  }
}

Batch SentBatch::receive(Communicator& group, std::size_t size, const SampleShares& shares) {
  Kinds kinds;
  group.broadcast(bytes_of_value(kinds));
  const std::size_t sample_bytes = values_ * (kinds.float_samples ? sizeof(float) : 1);
  samples_.resize(size * sample_bytes);
  scatter(group, samples_, sample_bytes, shares);
  if (kinds.number_targets) {
    targets_.resize(size * outputs_ * sizeof(float));
    scatter(group, targets_, outputs_ * sizeof(float), shares);
  } else {
    targets_.resize(size * sizeof(std::int32_t));
    group.broadcast(targets_);
  }
  rows_.resize(size);
  std::iota(rows_.begin(), rows_.end(), 0U);
  Batch batch{.samples = {}, .targets = {}, .indices = rows_};
  if (kinds.float_samples)
    batch.samples = values_of<float>(samples_);
  else
    batch.samples = values_of<std::uint8_t>(samples_);
  if (kinds.number_targets)
    batch.targets = values_of<float>(targets_);
  else
    batch.targets = values_of<std::int32_t>(targets_);
  return batch;
}

}  // namespace sweep
