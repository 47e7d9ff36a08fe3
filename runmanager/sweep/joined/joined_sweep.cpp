#include "runmanager/sweep/joined/joined_sweep.h"

#include <thread>

#include "core/base/error.h"
#include "core/base/file.h"
#include "runmanager/records/ended_runs.h"
#include "runmanager/records/run_files.h"
#include "runmanager/records/sweep_directory.h"

namespace sweep {
namespace {

constexpr std::chrono::milliseconds kPause(20), kLongPause(200);

// Holds a claim, and gives it back however the scope is left.
class Turn {
 public:
  Turn(ClaimChains& chains, Claim claim) : chains_(chains), claim_(std::move(claim)) {}
  ~Turn() { chains_.release(claim_); }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

 private:
  ClaimChains& chains_;
  Claim claim_;
};

// Waits for this process's turn; none if asked to stop.
std::optional<Claim> wait_for_turn(ClaimChains& turns, const char* name, MemberWatch& watch,
                                   const std::function<int()>& stop_requested) {
  for (;;) {
    turns.refresh();
    if (std::optional<Claim> claim = turns.claim(name, watch)) return claim;
    if (stop_requested && stop_requested() != 0) return std::nullopt;
    std::this_thread::sleep_for(kPause);
  }
}

}  // namespace

JoinedSweep::JoinedSweep(const std::filesystem::path& directory)
    : claims_(directory / kClaimsFolder),
      member_(SweepDirectory::members_folder(directory), this_process()),
      watch_(SweepDirectory::members_folder(directory), member_.identity()),
      runs_(claims_of_runs(directory), member_),
      turns_(claims_ / "turns", member_) {}

bool JoinedSweep::join(const std::function<void()>& set_up, const std::function<int()>& stop_requested) {
  std::optional<Claim> claim = wait_for_turn(turns_, "setup", watch_, stop_requested);
  if (!claim) return false;
  const Turn turn(turns_, *std::move(claim));
  runs_.refresh();
  set_up();
  member_.set_state(MemberState::kJoined);
  return true;
}

Others JoinedSweep::others() {
  Others known = Others::kNone;
  for (const OtherMember& member : watch_.look_at_all()) {
    if (member.life == Life::kDead) {
      watch_.remove(member.identity);
    } else if (member.state == MemberState::kJoined) {
      if (member.life == Life::kSeen) known = Others::kLiving;
      if (known == Others::kNone) known = Others::kUnknown;
    }
  }
  return known;
}

Others JoinedSweep::certain_others(const std::function<int()>& stop_requested) {
  for (;;) {
    const Others known = others();
    if (known != Others::kUnknown || (stop_requested && stop_requested() != 0)) return known;
    std::this_thread::sleep_for(kLongPause);
  }
}

// All tasks of an array are one job: "4711_3" and "4711_4".
std::filesystem::path JoinedSweep::job_file() const {
  const std::string& task = member_.identity().task;
  return claims_ / ("job." + task.substr(0, task.find_first_of("_.")));
}

bool JoinedSweep::is_first_of_job() const {
  std::error_code error;
  return member_.identity().task.empty() || !std::filesystem::exists(job_file(), error);
}

void JoinedSweep::mark_job() const {
  if (member_.identity().task.empty()) return;
  try {
    const FileDescriptor file = open_output_file(job_file(), OutputMode::kAppend);
  } catch (const IoError&) {  // NOLINT(bugprone-empty-catch): as said above
  }
}

void JoinedSweep::write_results(const std::function<void()>& write) {
  const Turn turn(turns_, *wait_for_turn(turns_, "results", watch_, {}));
  write();
}

}  // namespace sweep
