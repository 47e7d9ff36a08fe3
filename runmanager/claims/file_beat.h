// A file whose time shows to other machines that somebody uses it.
#pragma once

#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <thread>

namespace sweep {

/// How often a process shows in every lease that it lives.
inline constexpr double kBeatsPerLease = 12;

/// Sets the time of a file kBeatsPerLease times in every lease, from the constructor to the destructor.
/// Errors are ignored.
class FileBeat {
 public:
  FileBeat(std::filesystem::path file, std::chrono::duration<double> lease);
  ~FileBeat();
  FileBeat(const FileBeat&) = delete;
  FileBeat& operator=(const FileBeat&) = delete;

 private:
  void loop();

  const std::filesystem::path file_;
  const std::chrono::duration<double> between_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool closing_ = false;
  std::thread thread_;
};

/// Watches the file for a lease. Returns true as soon as its time has changed: only a change counts, as the
/// clocks of machines differ.
bool beats_within(const std::filesystem::path& file, std::chrono::duration<double> lease);

}  // namespace sweep
