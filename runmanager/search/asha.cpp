#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <set>
#include <tuple>
#include <utility>

#include "runmanager/search/halving.h"

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

}  // namespace

SearchState Asha::play(std::size_t trials, bool more, const ResultOfTrial& result,
                       const ReachesTarget& reaches_target) const {
  return Play(*this, trials, more).run(result, reaches_target);
}

}  // namespace sweep
