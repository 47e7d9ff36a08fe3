// Processes that work on one directory together, and how each sees whether another still lives.
//
// Each has two files in the folder of members: ID, who it is, and ID.beat, which it rewrites every few
// seconds with the next number and its state. Clocks of different machines are never compared: a process
// counts as dead when an observer has seen its number unchanged for a lease, by the observer's own clock.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "runmanager/claims/process_identity.h"

namespace sweep {

/// How long a silent process counts as living: SWEEP_LEASE_SECONDS, or 60 s. Processes that work together
/// need the same. A process beats twelve times in it.
std::chrono::duration<double> lease();

enum class MemberState { kStarting, kJoined };

/// This process among the members of `folder`, from the constructor to the destructor. A thread writes the
/// beats. Methods may be called by any thread.
class Member {
 public:
  /// Makes the folder. Throws IoError.
  Member(std::filesystem::path folder, ProcessIdentity identity);
  /// Removes its files: the others need not wait for a lease.
  ~Member();
  Member(const Member&) = delete;
  Member& operator=(const Member&) = delete;

  const ProcessIdentity& identity() const { return identity_; }
  const std::filesystem::path& folder() const { return folder_; }
  /// The file that says who this is. It has the same content for ever, so other names can be linked to it.
  std::filesystem::path token() const { return folder_ / identity_.id; }
  /// Puts another file of the same content in its place: file systems allow a file only so many links, ext4
  /// 65,000. Throws IoError.
  void renew_token();

  /// Tells the others; returns when they can see it. Throws IoError.
  void set_state(MemberState state);
  /// Whether others took this process for dead, while it was stopped, say, and have removed it: it must not
  /// claim anything any more.
  bool was_removed() const { return removed_; }

 private:
  void write_token(const std::filesystem::path& path) const;
  void beat();
  void loop();

  const std::filesystem::path folder_;
  const ProcessIdentity identity_;
  std::atomic<bool> removed_{false};
  std::mutex mutex_;  // guards what follows
  std::condition_variable wake_;
  std::uint64_t count_ = 0;
  MemberState state_ = MemberState::kStarting;
  bool closing_ = false;
  std::thread thread_;
};

/// Whether the member has given a sign of life of late, by the times of its file and of this machine's clock.
/// Good enough to be shown; whether its runs may be taken over only MemberWatch tells.
bool has_beaten_lately(const std::filesystem::path& folder, const ProcessIdentity& member);

enum class Life {
  kUnseen,  // nothing has been seen of it yet, and a lease has not passed
  kSeen,    // it gave a sign of life less than a lease ago
  kDead
};

struct OtherMember {
  ProcessIdentity identity;
  MemberState state = MemberState::kStarting;
  Life life = Life::kUnseen;
};

/// What this process has seen of the members of a folder. Not thread-safe.
class MemberWatch {
 public:
  MemberWatch(std::filesystem::path folder, ProcessIdentity here);

  /// Looks at the process once. It is dead also if its files are gone: it has ended in order.
  Life look_at(const ProcessIdentity& process);
  /// All of the folder but this process.
  std::vector<OtherMember> look_at_all();
  /// Removes what a dead process has left of its membership. One that lives after all can tell.
  void remove(const ProcessIdentity& dead);

 private:
  using Clock = std::chrono::steady_clock;
  struct Sight {
    std::string beat;
    Clock::time_point changed, looked;  // when it was first seen with this beat, and last looked at
    bool has_changed = false;
  };

  const std::filesystem::path folder_;
  const ProcessIdentity here_;
  std::map<std::string, Sight> sights_;  // by id
};

}  // namespace sweep
