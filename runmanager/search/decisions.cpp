#include "runmanager/search/decisions.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>

namespace sweep {
namespace {

using Place = std::pair<double, std::size_t>;  // value and trial: the better and earlier one is less

// What the results of one rung are so far.
struct RungOfAsha {
  std::size_t results = 0;
  std::set<Place> waiting;     // those with a value that have not gone on
  std::vector<Place> gone_on;  // the others, sorted

  // Whether the best one that waits is among the best results, of which there is one for each `eta`.
  bool may_go_on(std::size_t eta) const {
    const auto better = std::ranges::lower_bound(gone_on, *waiting.begin()) - gone_on.begin();
    return static_cast<std::size_t>(better) < results / eta;
  }

  // Returns the trial that was the best one.
  std::size_t send_on() {
    const Place best = *waiting.begin();
    waiting.erase(waiting.begin());
    gone_on.insert(std::ranges::lower_bound(gone_on, best), best);
    return best.second;
  }
};

struct Job {
  std::int64_t end;   // in imaginary time
  std::size_t order;  // of the decision
  std::size_t trial, rung;

  bool operator<(const Job& other) const { return std::tie(end, order) < std::tie(other.end, other.order); }
};

class Play {
 public:
  Play(const Asha& asha, std::size_t trials, bool more)
      : asha_(asha), trials_(trials), more_(more), rungs_(asha.epochs.size()), state_(trials) {}

  SearchState run(const ResultOfTrial& result, const ReachesTarget& reaches_target) {
    for (;;) {
      while (running_.size() < asha_.at_once && begin_next(reaches_target)) {
      }
      if (state_.wants_trial) break;
      if (running_.empty()) {
        if (!is_last_begun_ && send_on([](const RungOfAsha&) { return true; })) continue;
        end_all();
        break;
      }
      const Job job = *running_.begin();
      const KnownResult known = result(job.trial, asha_.epochs[job.rung]);
      if (!known.is_known) break;
      running_.erase(running_.begin());
      now_ = job.end;
      state_.used[job.trial] = asha_.epochs[job.rung];
      ++rungs_[job.rung].results;
      if (!known.value) continue;
      rungs_[job.rung].waiting.insert({*known.value, job.trial});
      is_target_reached_ |= reaches_target(*known.value);
    }
    return std::move(state_);
  }

 private:
  void begin(std::size_t trial, std::size_t rung) {
    const int epochs = asha_.epochs[rung] - (rung > 0 ? asha_.epochs[rung - 1] : 0);
    running_.insert({now_ + epochs, decisions_++, trial, rung});
    state_.until[trial] = asha_.epochs[rung];
    is_last_begun_ |= rung + 1 == rungs_.size();
  }

  bool begin_next(const ReachesTarget& reaches_target) {
    const auto goes_on = [&](const RungOfAsha& rung) {
      return is_target_reached_ ? reaches_target(rung.waiting.begin()->first) : rung.may_go_on(asha_.eta);
    };
    if (send_on(goes_on)) return true;
    if (is_target_reached_) return false;
    if (begun_trials_ < trials_) {
      begin(begun_trials_++, 0);
      return true;
    }
    state_.wants_trial = more_;
    return false;
  }

  // Begins the next rung for the best trial of the highest rung that has one which `goes_on`.
  bool send_on(const auto& goes_on) {
    for (std::size_t rung = rungs_.size() - 1; rung-- > 0;) {
      if (rungs_[rung].waiting.empty() || !goes_on(rungs_[rung])) continue;
      begin(rungs_[rung].send_on(), rung + 1);
      return true;
    }
    return false;
  }

  void end_all() {
    const bool any_value = std::ranges::any_of(
        rungs_, [](const RungOfAsha& rung) { return !rung.waiting.empty() || !rung.gone_on.empty(); });
    for (std::size_t i = 0; i < begun_trials_; ++i)
      state_.ended[i] =
          !any_value ? fmt::format("no trial has a value of the metric after epoch {}, so none goes on",
                                   state_.until[i])
                     : fmt::format("not among the best 1 in {} after epoch {}", asha_.eta, state_.until[i]);
  }

  const Asha& asha_;
  std::size_t trials_;
  bool more_;
  std::vector<RungOfAsha> rungs_;
  std::set<Job> running_;
  std::int64_t now_ = 0;
  std::size_t decisions_ = 0, begun_trials_ = 0;
  bool is_last_begun_ = false, is_target_reached_ = false;
  SearchState state_;
};

constexpr double kResampled = 0.25, kSmaller = 0.8, kLarger = 1.2;
constexpr int kDrawsOfCopy = 100;  // before a copy has its parent's point, as all others are left out

double explored(const Dimension& dimension, double value, UnitRandom& random) {
  const bool is_resampled = random.unit() < kResampled, grows = random.unit() < 0.5;
  const bool has_order = dimension.kind != DimensionKind::kChoice || dimension.ordered;
  if (is_resampled || !has_order) return UnitScale(dimension).value(random.unit());
  const double step = grows ? 1 : -1;
  if (dimension.kind == DimensionKind::kChoice) return rounded(dimension, value + step);
  const double other = rounded(dimension, value * (grows ? kLarger : kSmaller));
  return has_integers(dimension.kind) && other == value ? rounded(dimension, value + step) : other;
}

std::size_t replaced_of(const Population& population) {
  return population.members < 2 ? 0 : std::max<std::size_t>(population.members / population.reduction, 1);
}

}  // namespace

Halving::Halving(std::size_t trials, int min_epochs, int max_epochs, int eta, std::size_t first_trial)
    : first_trial_(first_trial) {
  // power = eta^s. 64 bits: it stays below max_epochs, which has 31, and so does eta.
  const auto most = static_cast<std::uint64_t>(max_epochs);
  const auto factor = static_cast<std::uint64_t>(eta);
  std::uint64_t power = 1;
  while (power * factor <= trials && power * factor * static_cast<std::uint64_t>(min_epochs) <= most)
    power *= factor;
  std::uint64_t divisor = 1;
  for (; power >= 1; power /= factor, divisor *= factor)
    rungs_.push_back({.trials = static_cast<std::size_t>(trials / divisor),
                      .epochs = static_cast<int>((2 * most + power) / (2 * power))});
}

std::size_t Halving::total_epochs() const {
  std::size_t total = 0;
  int before = 0;
  for (const Rung& rung : rungs_) {
    total += rung.trials * static_cast<std::size_t>(rung.epochs - before);
    before = rung.epochs;
  }
  return total;
}

std::vector<Halving> hyperband_brackets(int min_epochs, int max_epochs, int eta,
                                        std::optional<std::size_t> trials) {
  // As many rungs as with any number of trials.
  const Halving deepest(std::numeric_limits<std::size_t>::max(), min_epochs, max_epochs, eta);
  const std::size_t brackets = deepest.rungs().size();
  std::vector<std::uint64_t> powers{1};
  while (powers.size() < brackets) powers.push_back(powers.back() * static_cast<std::uint64_t>(eta));

  std::vector<Halving> result;
  std::size_t first = 0;
  do {
    for (std::size_t rungs = brackets; rungs >= 1 && first < trials.value_or(~std::size_t{0}); --rungs) {
      const std::uint64_t power = powers[rungs - 1];
      const auto whole = static_cast<std::size_t>((brackets * power + rungs - 1) / rungs);
      const std::size_t count = trials ? std::min(whole, *trials - first) : whole;
      // The last max_epochs / power >= least gives as many rungs as the bracket has.
      const auto least = static_cast<int>(static_cast<std::uint64_t>(max_epochs) / power);
      result.emplace_back(count, least, max_epochs, eta, first);
      first += count;
    }
  } while (trials && first < *trials);
  return result;
}

void Halving::play(SearchState& state, bool more, const ResultOfTrial& result,
                   const ReachesTarget& reaches_target) const {
  // A space may have fewer points than the bracket has places.
  const std::size_t trials = state.until.size(),
                    places = std::min(rungs_[0].trials, trials - std::min(trials, first_trial_));
  std::vector<std::size_t> reached(places);
  std::iota(reached.begin(), reached.end(), first_trial_);
  bool is_complete = !more || places == rungs_[0].trials;
  for (std::size_t rung = 0; rung < rungs_.size(); ++rung) {
    const int until = rungs_[rung].epochs;
    std::vector<std::pair<double, std::size_t>> good;  // value and trial, at last the best ones, sorted
    for (const std::size_t i : reached) {
      const KnownResult known = result(i, until);
      is_complete &= known.is_known;
      if (known.value) good.emplace_back(*known.value, i);
      state.until[i] = until;
    }
    if (!is_complete || rung + 1 == rungs_.size()) return;
    std::ranges::sort(good);
    good.resize(std::min(good.size(), rungs_[rung + 1].trials));
    if (!good.empty() && reaches_target(good[0].first))
      std::erase_if(good, [&](const auto& trial) { return !reaches_target(trial.first); });
    // Without any value there is no best one.
    const std::string ending =
        good.empty()
            ? fmt::format("none of the {} trials has a value of the metric after epoch {}, so none goes on",
                          reached.size(), until)
            : fmt::format("not among the best {} of {} after epoch {}", good.size(), reached.size(), until);
    for (const std::size_t i : reached) state.ended[i] = ending;
    reached.clear();
    for (const auto& [value, i] : good) {
      state.ended[i].clear();
      reached.push_back(i);
    }
    std::ranges::sort(reached);
  }
}

SearchState Asha::play(std::size_t trials, bool more, const ResultOfTrial& result,
                       const ReachesTarget& reaches_target) const {
  return Play(*this, trials, more).run(result, reaches_target);
}

std::size_t Population::total() const {
  return members + replaced_of(*this) * static_cast<std::size_t>((epochs - 1) / interval);
}

SearchState Population::play(std::size_t trials, const ResultOfTrial& result,
                             const ReachesTarget& reaches_target) const {
  SearchState state(trials);
  std::vector<std::size_t> current(members);
  std::iota(current.begin(), current.end(), std::size_t{0});
  for (int epoch = std::min(interval, epochs);; epoch = std::min(epoch + interval, epochs)) {
    if (std::ranges::any_of(current, [trials](std::size_t member) { return member >= trials; })) return state;
    for (const std::size_t member : current) state.until[member] = epoch;
    if (epoch == epochs) return state;
    const std::string reason = fmt::format("among the worst of {} after epoch {}", members, epoch);
    std::vector<std::pair<double, std::size_t>> ranks;  // value and place in `current`, the best one first
    for (std::size_t place = 0; place < current.size(); ++place) {
      const KnownResult known = result(current[place], epoch);
      if (!known.is_known) return state;
      ranks.emplace_back(known.value.value_or(std::numeric_limits<double>::infinity()), place);
    }
    std::ranges::sort(ranks);
    if (reaches_target(ranks[0].first)) {
      for (const auto& [value, place] : ranks) {
        if (reaches_target(value))
          state.until[current[place]] = epochs;
        else
          state.ended[current[place]] = reason;
      }
      return state;
    }
    const auto good = static_cast<std::size_t>(
        std::ranges::count_if(ranks, [](const auto& rank) { return std::isfinite(rank.first); }));
    // At most half are replaced, so that no parent is.
    for (std::size_t i = 0; good > 0 && i < replaced_of(*this); ++i) {
      std::size_t& last = current[ranks[ranks.size() - 1 - i].second];
      state.ended[last] = reason;
      state.copies.push_back({.parent = current[ranks[i % good].second], .epoch = epoch});
      last = members + state.copies.size() - 1;
    }
  }
}

SearchPoint explored_point(const SearchDomain& domain, const SearchPoint& parent, UnitRandom& random) {
  for (int draw = 0; draw < kDrawsOfCopy; ++draw) {
    SearchPoint point = parent;
    for (std::size_t d = 0; d < point.size(); ++d) {
      const Dimension& dimension = domain.dimensions[d];
      // One that does not exist in the parent may exist in the copy.
      point[d] =
          point[d] ? explored(dimension, *point[d], random) : UnitScale(dimension).value(random.unit());
    }
    point = without_inactive(domain, std::move(point));
    if (!domain.is_allowed || domain.is_allowed(point)) return point;
  }
  return parent;
}

}  // namespace sweep
