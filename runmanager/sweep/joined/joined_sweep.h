// A sweep's directory as processes share it that work on one sweep together.
#pragma once

#include <filesystem>
#include <functional>

#include "runmanager/claims/claim_chains.h"
#include "runmanager/claims/membership.h"

namespace sweep {

/// What is known of other processes that have joined the sweep.
enum class Others {
  kNone,     // none has
  kUnknown,  // one has that has not been seen to live, nor to be dead
  kLiving    // one lives
};

/// This process's part in the sweep, until it is destroyed. Not thread-safe.
class JoinedSweep {
 public:
  /// `directory`: of the sweep, held by SweepDirectory::join(). Throws IoError.
  explicit JoinedSweep(const std::filesystem::path& directory);

  /// Joins: calls set_up() while no other process is about to join, and is seen by others as joined from then
  /// on. Returns false, and has not called it, if `stop_requested` returned something else than 0 while this
  /// waited for others.
  bool join(const std::function<void()>& set_up, const std::function<int()>& stop_requested);

  /// What of the others can be told now. Removes what is left of those that are dead.
  Others others();
  /// The same when it is certain, which may take a lease; kUnknown only if asked to stop.
  Others certain_others(const std::function<int()>& stop_requested);

  /// Whether no process of the same Slurm job has called mark_job(): it has not tried again yet what failed
  /// in earlier starts. Always outside Slurm, where each process is a start of its own.
  bool is_first_of_job() const;
  /// Errors are ignored: then another process of the job tries, too.
  void mark_job() const;

  /// Calls write() while none of the others writes results.
  void write_results(const std::function<void()>& write);
  /// This process has nothing more to train, but stays.
  void set_idle() { member_.set_state(MemberState::kStarting); }

  ClaimChains& runs() { return runs_; }
  MemberWatch& watch() { return watch_; }

 private:
  std::filesystem::path job_file() const;

  std::filesystem::path claims_;
  Member member_;
  MemberWatch watch_;
  ClaimChains runs_, turns_;
};

}  // namespace sweep
