#include "core/kernels/cuda/stage_round.h"

#include <algorithm>

namespace sweep::cuda {
namespace {

// Cuts the share, which has samples, into micro-batches of nearly equal numbers of units.
void append_share(StageRound& round, StageRound::Share share, const RoundOptions& options) {
  const std::size_t size = share.samples.size(), units = (size + options.unit - 1) / options.unit;
  share.micro_batches = std::min(units, std::max<std::size_t>(options.micro_batches, 1));
  const auto begin_of = [&](std::size_t micro_batch) {
    const std::size_t unit =
        run_begin(units, static_cast<int>(share.micro_batches), static_cast<int>(micro_batch));
    return static_cast<int>(std::min(size, unit * options.unit));
  };
  for (std::size_t micro_batch = 0; micro_batch < share.micro_batches; ++micro_batch)
    round.micro_batches.push_back({round.shares.size(), begin_of(micro_batch), begin_of(micro_batch + 1)});
  round.shares.push_back(share);
}

}  // namespace

std::vector<StageRound> training_rounds(std::size_t samples, const RoundOptions& options) {
  const BatchShares& shares = options.shares;
  std::vector<StageRound> rounds;
  for (int turn = 0; turn < shares.turns; ++turn) {
    const SampleRange all = samples_of_turn(samples, shares, turn);
    if (all.size() == 0) continue;
    const SampleRange own = samples_of_shares(samples, shares, turn, shares.first, shares.end);
    const std::size_t fed = own_samples_before(samples, shares, turn);
    const StageRound empty{.shares = {},
                           .micro_batches = {},
                           .sizes = share_sizes(samples, shares, turn),
                           .adds = all.begin > 0};
    if (options.together) rounds.push_back(empty);
    for (int number = shares.first; number < shares.end; ++number) {
      if (!options.together) rounds.push_back(empty);
      const SampleRange range = samples_of_shares(samples, shares, turn, number, number + 1);
      append_share(rounds.back(), {number, range, fed + range.begin - own.begin}, options);
    }
  }
  return rounds;
}

StageRound evaluation_round(std::size_t samples, const RoundOptions& options) {
  StageRound round;
  append_share(round, {options.shares.first, {0, samples}}, options);
  return round;
}

}  // namespace sweep::cuda
