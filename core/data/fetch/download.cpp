#include "core/data/fetch/download.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <vector>

#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/retry.h"
#include "core/base/spawn.h"

namespace sweep {
namespace {

namespace fs = std::filesystem;

constexpr int kTickMilliseconds = 100;
constexpr std::size_t kMostErrorBytes = 4096;

struct Outcome {
  int exit_code = 0;
  std::string error;  // the first line that the program wrote to its standard error
};

// Runs a program. `goes_on` is called several times a second; if it returns false or throws, the program is
// ended.
Outcome run_program(const std::vector<std::string>& words, const std::function<bool()>& goes_on) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw IoError(std::string("pipe: ") + std::strerror(errno));
  const FileDescriptor errors(ends[0]);
  Spawn spawn;
  spawn.give(ends[1], STDERR_FILENO);
  spawn.in_own_group();
  pid_t pid = 0;
  const int problem = spawn.start(words, pid);
  ::close(ends[1]);
  if (problem != 0) {
    throw DataError("the program " + words.front() + " is needed and cannot be started: " +
                    std::strerror(problem) + ". Install it with `apt-get install " + words.front() + "`");
  }
  const auto wait_for_end = [pid] {
    int status = 0;
    retry_interrupted([&] { return ::waitpid(pid, &status, 0); });
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  };
  Outcome outcome;
  try {
    for (ssize_t count = 1; count != 0;) {
      if (!goes_on()) ::kill(-pid, SIGTERM);
      pollfd ready{errors.get(), POLLIN, 0};
      if (::poll(&ready, 1, kTickMilliseconds) <= 0) continue;
      std::array<char, 512> text;
      count = retry_interrupted([&] { return ::read(errors.get(), text.data(), text.size()); });
      if (count > 0 && outcome.error.size() < kMostErrorBytes)
        outcome.error.append(text.data(), static_cast<std::size_t>(count));
      if (count < 0) break;
    }
  } catch (...) {
    ::kill(-pid, SIGTERM);
    wait_for_end();
    throw;
  }
  outcome.exit_code = wait_for_end();
  outcome.error.erase(std::min(outcome.error.find('\n'), outcome.error.size()));
  return outcome;
}

// The exit codes of curl(1).
std::string problem_of(const Outcome& outcome) {
  constexpr int kNoProxy = 5, kNoHost = 6, kNoConnection = 7, kTimedOut = 28, kNoFile = 37;
  switch (outcome.exit_code) {
    case kNoProxy:
    case kNoHost:
    case kNoConnection:
      return "cannot be reached (" + outcome.error + "): is there a network?";
    case kTimedOut:
      return "stands still (" + outcome.error + ")";
    case kNoFile:
      return "there is no such file, or it cannot be read";
    default:
      return "cannot be downloaded: " + outcome.error;
  }
}

}  // namespace

bool download(const std::string& url, const fs::path& path, const DownloadOptions& options) {
  constexpr int kCannotWrite = 23, kTooLarge = 63;
  bool ended = false, too_large = false;
  const auto goes_on = [&] {
    std::error_code none_yet;
    const std::uintmax_t bytes = fs::file_size(path, none_yet);
    const std::uint64_t done = none_yet ? 0 : bytes;
    too_large = done > options.most_bytes;
    ended = ended || (options.progress && !options.progress(done));
    return !ended && !too_large;
  };
  const Outcome outcome = run_program({"curl",
                                       "--silent",
                                       "--show-error",
                                       "--fail",
                                       "--location",
                                       "--proto",
                                       "=https,file",
                                       "--proto-redir",
                                       "=https",
                                       "--max-redirs",
                                       "10",
                                       "--connect-timeout",
                                       "30",
                                       "--speed-time",
                                       "60",
                                       "--speed-limit",
                                       "1000",
                                       "--max-filesize",
                                       std::to_string(options.most_bytes),
                                       "--user-agent",
                                       "sweep",
                                       "--output",
                                       path.string(),
                                       "--url",
                                       url},
                                      goes_on);
  if (ended) return false;
  std::error_code error;
  if (too_large || outcome.exit_code == kTooLarge ||
      (fs::file_size(path, error) > options.most_bytes && !error)) {
    throw DataError(url + ": has more than " + std::to_string(options.most_bytes) +
                    " bytes, which is the most that is allowed");
  }
  if (outcome.exit_code == kCannotWrite) throw IoError(path.string() + ": cannot write: " + outcome.error);
  if (outcome.exit_code != 0) throw DataError(url + ": " + problem_of(outcome));
  return true;
}

void unpack_tar(const fs::path& archive, std::span<const std::string> names, const fs::path& folder,
                const std::string& url) {
  std::vector<std::string> words = {"tar",           "--extract",      "--file",      archive.string(),
                                    "--directory",   folder.string(),  "--transform", "s,^.*/,,",
                                    "--no-anchored", "--no-same-owner"};
  words.insert(words.end(), names.begin(), names.end());
  const Outcome outcome = run_program(words, [] { return true; });
  if (outcome.exit_code != 0) throw DataError(url + ": cannot be unpacked: " + outcome.error);
  for (const std::string& name : names) {
    std::error_code error;
    if (!fs::is_regular_file(fs::symlink_status(folder / name, error)))
      throw DataError(url + ": the archive has no file " + name);
  }
}

}  // namespace sweep
