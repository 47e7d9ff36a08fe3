#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <set>
#include <tuple>
#include <utility>

#include "runmanager/search/halving.h"

namespace sweep {
namespace {

using Place = std::pair<double, std::size_t>;  // value and trial: the better and earlier one is less

// What the results of one rung are so far.
class RungOfAsha {
 public:
  void add(std::size_t trial, std::optional<double> value) {
    ++results_;
    if (value && std::isfinite(*value)) waiting_.insert({*value, trial});
  }

  // The best trial that has not gone on.
  std::optional<Place> best() const {
    return waiting_.empty() ? std::nullopt : std::optional(*waiting_.begin());
  }

  // Whether that one is among the best results, of which there is one for each `eta`.
  bool may_go_on(std::size_t eta) const {
    const auto better = std::ranges::lower_bound(gone_on_, *waiting_.begin()) - gone_on_.begin();
    return static_cast<std::size_t>(better) < results_ / eta;
  }

  bool has_value() const { return !waiting_.empty() || !gone_on_.empty(); }

  std::size_t send_on() {
    const Place best = *waiting_.begin();
    waiting_.erase(waiting_.begin());
    gone_on_.insert(std::ranges::lower_bound(gone_on_, best), best);
    return best.second;
  }

 private:
  std::size_t results_ = 0;
  std::set<Place> waiting_;
  std::vector<Place> gone_on_;  // sorted
};

struct Job {
  std::int64_t end;   // in imaginary time
  std::size_t order;  // of the decision
  std::size_t trial, rung;

  bool operator<(const Job& other) const { return std::tie(end, order) < std::tie(other.end, other.order); }
};

class Play {
 public:
  Play(const std::vector<int>& epochs, std::size_t eta, std::size_t trials, bool more)
      : epochs_(epochs), eta_(eta), trials_(trials), more_(more), rungs_(epochs.size()), state_(trials) {}

  SearchState run(std::size_t at_once, const ResultOfTrial& result, const ReachesTarget& reaches_target) {
    for (;;) {
      while (running_.size() < at_once && begin_next(reaches_target)) {
      }
      if (state_.wants_trial) break;
      if (running_.empty()) {
        if (!is_last_begun_ && send_on([](const RungOfAsha&) { return true; })) continue;
        end_all();
        break;
      }
      const Job job = *running_.begin();
      const KnownResult known = result(job.trial, epochs_[job.rung]);
      if (!known.is_known) break;
      running_.erase(running_.begin());
      now_ = job.end;
      state_.used[job.trial] = epochs_[job.rung];
      rungs_[job.rung].add(job.trial, known.value);
      is_target_reached_ |= known.value && reaches_target(*known.value);
    }
    return std::move(state_);
  }

 private:
  void begin(std::size_t trial, std::size_t rung) {
    const int epochs = epochs_[rung] - (rung > 0 ? epochs_[rung - 1] : 0);
    running_.insert({now_ + epochs, decisions_++, trial, rung});
    state_.until[trial] = epochs_[rung];
    is_last_begun_ |= rung + 1 == rungs_.size();
  }

  bool begin_next(const ReachesTarget& reaches_target) {
    const auto goes_on = [&](const RungOfAsha& rung) {
      return is_target_reached_ ? reaches_target(rung.best()->first) : rung.may_go_on(eta_);
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
      if (!rungs_[rung].best() || !goes_on(rungs_[rung])) continue;
      begin(rungs_[rung].send_on(), rung + 1);
      return true;
    }
    return false;
  }

  void end_all() {
    const bool any_value = std::ranges::any_of(rungs_, &RungOfAsha::has_value);
    for (std::size_t i = 0; i < begun_trials_; ++i)
      state_.ended[i] =
          !any_value ? fmt::format("no trial has a value of the metric after epoch {}, so none goes on",
                                   state_.until[i])
                     : fmt::format("not among the best 1 in {} after epoch {}", eta_, state_.until[i]);
  }

  const std::vector<int>& epochs_;
  std::size_t eta_, trials_;
  bool more_;
  std::vector<RungOfAsha> rungs_;
  std::set<Job> running_;
  std::int64_t now_ = 0;
  std::size_t decisions_ = 0, begun_trials_ = 0;
  bool is_last_begun_ = false, is_target_reached_ = false;
  SearchState state_;
};

}  // namespace

SearchState Asha::play(std::size_t trials, bool more, const ResultOfTrial& result,
                       const ReachesTarget& reaches_target) const {
  return Play(epochs, eta, trials, more).run(at_once, result, reaches_target);
}

}  // namespace sweep
