// What the devices that share a batch let each other have; nothing if there is one.
#include <algorithm>
#include <chrono>

#include "core/kernels/cpu/batch_runner.h"

namespace sweep::cpu {
void BatchRunner::gather(std::span<const SharedArray> arrays) {
  const auto begin = std::chrono::steady_clock::now();
  group_->all_gather(arrays);
  communication_seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// Lets every device have the sums of all blocks.
void BatchRunner::gather_sums(const BlockSums& sums, const TrainingPass& pass) {
  if (group_ == nullptr || !pass.turn) return;
  const IndexRange all = pass.blocks_of(pass.all);
  begins_.clear();
  for (std::size_t device = 0; device < place_.count; ++device)
    begins_.push_back((pass.blocks_of(shares_.of(*pass.turn, device)).begin - all.begin) * sums.bytes);
  begins_.push_back(all.size() * sums.bytes);
  const SharedArray array{sums.data, begins_};
  gather({&array, 1});
}

// The totals of a turn's partial sums.
SharedArray BatchRunner::shared_totals(const PartialShares& shares, std::size_t turn) {
  if (totals_begins_.size() <= turn) totals_begins_.resize(turn + 1);
  std::vector<std::size_t>& begins = totals_begins_[turn];
  begins.clear();
  for (std::size_t device = 0; device < place_.count; ++device)
    begins.push_back(shares.of(turn, device).begin * sizeof(PartialTotals));
  begins.push_back(shares.of(turn).end * sizeof(PartialTotals));
  return {bytes_of(std::span(totals_)).data(), begins};
}

void BatchRunner::gather_gradient() {
  if (group_ == nullptr) return;
  // As many ranges as the threads, but not so small that their caches' lines were shared.
  const std::size_t lines = program_.parameter_floats() / kLanes, parts = std::min(lines, 8 * pool_.size());
  pool_.run(parts, [&](std::size_t part, std::size_t) noexcept {
    const std::size_t begin = part_begin(lines, parts, part) * kLanes;
    memory_.gradient.add_up_share(begin, part_begin(lines, parts, part + 1) * kLanes - begin);
  });
  gathered_.clear();
  gathered_.push_back(memory_.gradient.share());
  totals_begins_.resize(std::max(totals_begins_.size(), shares_.turns()));
  for (std::size_t turn = 0; turn < shares_.turns(); ++turn)
    gathered_.push_back(shared_totals(shares_, turn));
  gather(gathered_);
}

// Lets every device have the totals, and the outputs if there is room for them.
void BatchRunner::gather_evaluation(const Batch& batch, std::span<float> outputs) {
  if (group_ == nullptr) return;
  gathered_.clear();
  gathered_.push_back(shared_totals(evaluation_shares_, 0));
  if (!outputs.empty()) {
    begins_.clear();
    for (const std::size_t sample : sample_shares(batch.size(), false).of(0))
      begins_.push_back(sample * outputs_ * sizeof(float));
    gathered_.push_back({bytes_of(outputs).data(), begins_});
  }
  gather(gathered_);
}

const SampleShares& BatchRunner::sample_shares(std::size_t samples, bool training) {
  const std::size_t blocks = block_count(samples), partials = partial_count(network_, program_, blocks);
  PartialShares& shares = training ? shares_ : evaluation_shares_;
  shares.assign(partials, training ? turns_of(options_, program_) : 1, place_.count);
  const auto sample_at = [&](std::size_t part) {
    return std::min(part_begin(blocks, partials, part) * kLanes, samples);
  };
  sample_shares_.ranks = place_.count;
  sample_shares_.begins.clear();
  for (std::size_t turn = 0; turn < shares.turns(); ++turn) {
    for (std::size_t device = 0; device < place_.count; ++device)
      sample_shares_.begins.push_back(sample_at(shares.of(turn, device).begin));
    sample_shares_.begins.push_back(sample_at(shares.of(turn).end));
  }
  return sample_shares_;
}

}  // namespace sweep::cpu
