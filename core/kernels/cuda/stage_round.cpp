#include "core/kernels/cuda/stage_round.h"

#include <algorithm>

namespace sweep::cuda {
namespace {

// Cuts the part, which has samples, into pieces of nearly equal numbers of units.
void append_part(StageRound& round, StageRound::Part part, const RoundOptions& options) {
  const std::size_t size = part.samples.size(), units = (size + options.unit - 1) / options.unit;
  part.pieces = std::min(units, std::max<std::size_t>(options.pieces, 1));
  const auto begin_of = [&](std::size_t piece) {
    const std::size_t unit = run_begin(units, static_cast<int>(part.pieces), static_cast<int>(piece));
    return static_cast<int>(std::min(size, unit * options.unit));
  };
  for (std::size_t piece = 0; piece < part.pieces; ++piece)
    round.pieces.push_back({round.parts.size(), begin_of(piece), begin_of(piece + 1)});
  round.parts.push_back(part);
}

}  // namespace

std::vector<StageRound> training_rounds(std::size_t samples, const RoundOptions& options) {
  const GradientParts& parts = options.parts;
  std::vector<StageRound> rounds;
  for (int turn = 0; turn < parts.turns; ++turn) {
    const SampleRange all = samples_of_turn(samples, parts, turn);
    if (all.size() == 0) continue;
    const SampleRange own = samples_of_parts(samples, parts, turn, parts.first, parts.end);
    const std::size_t fed = own_samples_before(samples, parts, turn);
    const StageRound empty{
        .parts = {}, .pieces = {}, .sizes = part_sizes(samples, parts, turn), .adds = all.begin > 0};
    if (options.together) rounds.push_back(empty);
    for (int number = parts.first; number < parts.end; ++number) {
      if (!options.together) rounds.push_back(empty);
      const SampleRange range = samples_of_parts(samples, parts, turn, number, number + 1);
      append_part(rounds.back(), {number, range, fed + range.begin - own.begin}, options);
    }
  }
  return rounds;
}

StageRound evaluation_round(std::size_t samples, const RoundOptions& options) {
  StageRound round;
  append_part(round, {options.parts.first, {0, samples}}, options);
  return round;
}

}  // namespace sweep::cuda
