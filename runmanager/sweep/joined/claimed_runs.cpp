#include "runmanager/sweep/joined/claimed_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/base/error.h"
#include "runmanager/records/ended_runs.h"
#include "runmanager/records/run_record_json.h"

namespace sweep {
namespace {

// Between looks at what others do, while there is nothing to claim. Each lists folders with a name per run.
// Often enough for MemberWatch, which counts only the time that it has watched.
std::chrono::duration<double> between_looks() {
  return std::min(std::chrono::duration<double>(1.0), lease() / 6);
}

// Claims in a row that others were faster with, after which all names are read again: others have started
// long before, or are many.
constexpr int kMostLost = 32;

}  // namespace

ClaimedRuns::ClaimedRuns(JoinedSweep& joined, std::deque<ScheduledRun>& runs, SweepRecorder& recorder,
                         ClaimedRunsOptions options)
    : joined_(joined), recorder_(recorder), options_(std::move(options)) {
  for (ScheduledRun& run : runs) open_.push_back({.run = &run});
}

std::vector<const ScheduledRun*> ClaimedRuns::take_ready() {
  std::vector<const ScheduledRun*> ready;
  while (active_ < options_.slots && (options_.most == 0 || handed_out_ < options_.most)) {
    OpenRun* open = claim_next();
    if (open == nullptr) break;
    const std::size_t run = open->run->run;
    if (const std::optional<RunRecord> record = options_.finished(run)) {
      // An earlier start has finished it, and nobody has looked since.
      if (settle(run, *record)) recorder_.keep_run(run, *record);
      open->run->claim.reset();
      std::erase_if(open_, [run](const OpenRun& other) { return other.run->run == run; });
      next_ = 0;
      continue;
    }
    open->is_active = true;
    ++active_;
    ++handed_out_;
    ready.push_back(open->run);
  }
  return ready;
}

bool ClaimedRuns::may_have_more() const {
  if (active_ >= options_.slots) return false;
  if (!options_.leaves) return open_.size() > active_;
  // What others train is theirs. Whether one on another machine lives, though, is known only after a while.
  return std::ranges::any_of(open_, [this](const OpenRun& open) {
    const std::optional<ProcessIdentity> owner =
        open.is_active ? std::nullopt : joined_.runs().owner(name_of(open));
    return owner && joined_.watch().look_at(*owner) != Life::kSeen;
  });
}

ClaimedRuns::OpenRun* ClaimedRuns::claim_next() {
  if (OpenRun* open = claim_from(next_)) return open;
  const Clock::time_point now = Clock::now();
  if (last_look_ && now - *last_look_ < between_looks() && !options_.leaves) return nullptr;
  last_look_ = now;
  collect();
  return claim_from(0);
}

ClaimedRuns::OpenRun* ClaimedRuns::claim_from(std::size_t begin) {
  int lost = 0;
  for (std::size_t i = begin; i < open_.size(); ++i) {
    next_ = i + 1;
    if (open_[i].is_active || (options_.takes && !options_.takes(*open_[i].run->prepared.config))) continue;
    const bool was_free = joined_.runs().state(name_of(open_[i])) == ChainState::kFree;
    if (claim(open_[i])) return &open_[i];
    if (was_free && ++lost == kMostLost) {
      joined_.runs().refresh();
      lost = 0;
    }
  }
  return nullptr;
}

bool ClaimedRuns::claim(OpenRun& open) {
  open.run->claim = joined_.runs().claim(name_of(open), joined_.watch());
  return open.run->claim.has_value();
}

std::size_t ClaimedRuns::collect() {
  joined_.runs().refresh();
  const std::size_t before = open_.size();
  std::erase_if(open_, [this](OpenRun& open) { return !open.is_active && take_over_end(open); });
  if (open_.size() != before) next_ = 0;
  return before - open_.size();
}

// Returns whether the run has ended and its record is known.
bool ClaimedRuns::take_over_end(OpenRun& open) {
  ClaimChains& chains = joined_.runs();
  const std::string& name = name_of(open);
  if (chains.state(name) == ChainState::kOwned) chains.look_at(name);
  if (chains.state(name) != ChainState::kEnded) return false;
  if (chains.is_unsettled(name) || open.was_lost) settle_run(recorder_.directory(), chains, name);
  try {
    const std::optional<ChainEnd> end = chains.read_end(name);
    if (chains.state(name) == ChainState::kEnded && end) {
      recorder_.keep_run(open.run->run, parse_run_record(end->content, "the end of " + name));
      return true;
    }
  } catch (const DataError&) {
  }
  if (chains.state(name) == ChainState::kEnded) chains.reopen(name);
  return false;
}

bool ClaimedRuns::owns(std::size_t run) const {
  const OpenRun* open = find(run);
  return open != nullptr && open->run->claim && sweep::owns(*open->run->claim);
}

bool ClaimedRuns::settle(std::size_t run, const RunRecord& record) {
  OpenRun* open = find(run);
  if (open == nullptr || !open->run->claim) return false;
  ClaimChains& chains = joined_.runs();
  const Claim& claim = *open->run->claim;
  if (record.status == RunStatus::kInterrupted) {
    if (!sweep::owns(claim)) return false;
    chains.release(claim);
    return true;
  }
  if (!chains.end(claim, run_record_text(record))) return false;
  open->is_settled = true;
  place_ended_run(recorder_.directory(), {.attempt = claim.attempt(), .content = run_record_text(record)});
  chains.settle(name_of(*open));
  return true;
}

void ClaimedRuns::end(std::size_t run) {
  OpenRun* open = find(run);
  if (open == nullptr) return;
  --active_;
  open->is_active = false;
  open->run->claim.reset();
  open->was_lost = !open->is_settled;
  if (!open->is_settled) return;  // Another process has it, or it was interrupted.
  const auto position = open - open_.data();
  open_.erase(open_.begin() + position);
  if (static_cast<std::size_t>(position) < next_) --next_;
}

ClaimedRuns::OpenRun* ClaimedRuns::find(std::size_t run) {
  return const_cast<OpenRun*>(std::as_const(*this).find(run));
}

const ClaimedRuns::OpenRun* ClaimedRuns::find(std::size_t run) const {
  const auto found =
      std::ranges::lower_bound(open_, run, {}, [](const OpenRun& open) { return open.run->run; });
  return found == open_.end() || found->run->run != run ? nullptr : &*found;
}

}  // namespace sweep
