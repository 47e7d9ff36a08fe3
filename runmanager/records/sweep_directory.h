// The directory of a sweep, <logdir>/<name>, locked against a second writer.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "runmanager/records/lock_file.h"

namespace sweep {

/// Makes and locks a sweep's directory; the destructor unlocks it. Either one process has the directory for
/// itself, or several share it: then each run has a lock of its own, see RunLock. Not thread-safe.
class SweepDirectory {
 public:
  /// Throws IoError, before anything is made, if <logdir>/<name> could not be made or written, or if another
  /// process holds it (with its process id and host). An early check only: the result may change before
  /// open().
  static void check(const std::filesystem::path& logdir, const std::string& name, bool fresh);

  /// Makes and locks <logdir>/<name>, or with `fresh` the first of <name>, <name>-2, <name>-3, … that is not
  /// there yet. Throws IoError as check() does.
  static SweepDirectory open(const std::filesystem::path& logdir, const std::string& name, bool fresh);

  /// Makes <logdir>/<name>, to be shared with others that do the same; plan() follows. Throws IoError as
  /// check() does.
  static SweepDirectory join(const std::filesystem::path& logdir, const std::string& name);

  /// For a shared directory: calls `plan` while no other process plans or writes results. `alone`: no other
  /// process works on the sweep, so this one begins a start, called `start`, which others join. It then
  /// counts as working on the sweep. Returns false without calling `plan` if `stop_requested` returned
  /// something other than 0 while this waited. Throws IoError if a process has the directory for itself, and
  /// what `plan` throws.
  bool plan(const std::string& start, const std::function<void(bool alone)>& plan,
            const std::function<int()>& stop_requested);
  /// The name of the start that this process began or joined.
  const std::string& start() const { return start_; }
  /// Calls `write` while no other process plans or writes results.
  void write_results(const std::function<void()>& write);
  /// Other processes of this machine that work on the sweep, as far as this one may see them.
  int others_here() const;
  /// This process has nothing more to train, but waits for others.
  void stop_working() { lock_->unlock(); }
  /// After stop_working(): calls `act` if no process works on the sweep. None begins meanwhile.
  void act_alone(const std::function<void()>& act);

  /// Whether a running sweep holds `path`. Without one, a run.json that says "running" is of an interrupted
  /// run.
  static bool is_held(const std::filesystem::path& path);

  ~SweepDirectory();
  SweepDirectory(SweepDirectory&&) noexcept = default;
  SweepDirectory& operator=(SweepDirectory&&) = delete;
  SweepDirectory(const SweepDirectory&) = delete;

  const std::filesystem::path& path() const { return path_; }
  /// Whether the directory is still in its place: neither removed nor replaced by another.
  bool exists() const;
  /// The descriptor that holds the lock. Child processes that inherit it also keep the directory locked until
  /// they are gone, so that no other sweep writes while a worker of this one still does.
  int lock_fd() const { return lock_->fd(); }
  /// The sweep's name, with the number that `fresh` added.
  std::string name() const { return path_.filename().string(); }

 private:
  SweepDirectory(std::filesystem::path path, std::unique_ptr<LockFile> lock)
      : path_(std::move(path)), lock_(std::move(lock)) {}
  bool lock_with_others();
  void write_owner();

  std::filesystem::path path_;
  std::unique_ptr<LockFile> lock_;  // shared by those that work on the sweep together
  std::unique_ptr<LockFile> turn_;  // of a shared directory: of those that plan or write results
  std::string start_;
};

}  // namespace sweep
