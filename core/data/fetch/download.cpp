#include "core/data/fetch/download.h"

#include <iterator>
#include <sstream>
#include <vector>

#include "core/base/command.h"
#include "core/base/error.h"

namespace sweep {
namespace {

namespace fs = std::filesystem;

// Runs a program that has to be there.
CommandResult run_needed(const std::vector<std::string>& words, const std::function<bool()>& goes_on) {
  CommandResult result = run_command(words, goes_on);
  if (!result.started) {
    throw DataError("the program " + words.front() +
                    " is needed and not in PATH. Install it with `apt-get install " + words.front() + "`");
  }
  return result;
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

// The exit codes of curl(1).
std::string problem_of(const CommandResult& outcome) {
  constexpr int kNoProxy = 5, kNoHost = 6, kNoConnection = 7, kTimedOut = 28, kNoFile = 37;
  switch (outcome.code) {
    case kNoProxy:
    case kNoHost:
    case kNoConnection:
      return "cannot be reached (" + first_line(outcome.err) + "): is there a network?";
    case kTimedOut:
      return "made no progress for a minute (" + first_line(outcome.err) + ")";
    case kNoFile:
      return "there is no such file, or it cannot be read";
    default:
      return "cannot be downloaded: " + first_line(outcome.err);
  }
}

// What a machine without curl may have: Python. With curl's exit codes.
constexpr char kPythonCurl[] = R"(
import ssl, sys, urllib.error, urllib.request
url, path, most = sys.argv[1], sys.argv[2], int(sys.argv[3])

def fail(code, text=""):
    print(text, file=sys.stderr)
    sys.exit(code)

def read(read_next, *arguments, **options):
    try:
        return read_next(*arguments, **options)
    except urllib.error.HTTPError as error:
        fail(22, f"The requested URL returned error: {error.code}")
    except OSError as error:
        reason = getattr(error, "reason", error)
        is_late = isinstance(reason, OSError) and "timed out" in str(reason)
        code = 28 if is_late else 60 if isinstance(reason, ssl.SSLError) else 37 if url.startswith("file:") else 7
        fail(code, getattr(reason, "strerror", None) or reason)

class HttpsOnly(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, request, source, code, message, headers, target):
        if not target.startswith("https://"):
            fail(1, f"is moved to {target}, which is not https://")
        return super().redirect_request(request, source, code, message, headers, target)

opener = urllib.request.build_opener(HttpsOnly)
opener.addheaders = [("User-Agent", "sweep")]
source = read(opener.open, url, timeout=60)
done = 0
try:
    with open(path, "wb") as file:
        while True:
            piece = read(source.read, 1 << 16)
            if not piece:
                break
            done += len(piece)
            if done > most:
                fail(63)
            file.write(piece)
except OSError as error:
    fail(23, error.strerror)
)";

CommandResult run_curl(const std::string& url, const fs::path& path, std::uint64_t most_bytes,
                       const std::function<bool()>& goes_on) {
  std::istringstream options(
      "curl --silent --show-error --fail --location --proto =https,file --proto-redir =https --max-redirs 10 "
      "--connect-timeout 30 --speed-time 60 --speed-limit 1000 --user-agent sweep");
  std::vector<std::string> curl(std::istream_iterator<std::string>(options), {});
  curl.insert(curl.end(),
              {"--max-filesize", std::to_string(most_bytes), "--output", path.string(), "--url", url});
  CommandResult result = run_command(curl, goes_on);
  if (result.started) return result;
  result = run_command({"python3", "-I", "-c", kPythonCurl, url, path.string(), std::to_string(most_bytes)},
                       goes_on);
  return result.started ? result : run_needed(curl, goes_on);
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
  const CommandResult outcome = run_curl(url, path, options.most_bytes, goes_on);
  if (ended) return false;
  std::error_code error;
  if (too_large || outcome.code == kTooLarge || (fs::file_size(path, error) > options.most_bytes && !error)) {
    throw DataError(url + ": has more than " + std::to_string(options.most_bytes) +
                    " bytes, which is the most that is allowed");
  }
  if (outcome.code == kCannotWrite)
    throw IoError(path.string() + ": cannot write: " + first_line(outcome.err));
  if (outcome.code != 0) throw DataError(url + ": " + problem_of(outcome));
  return true;
}

void unpack_tar(const fs::path& archive, std::span<const std::string> names, const fs::path& folder,
                const std::string& url) {
  std::vector<std::string> words = {"tar",           "--extract",      "--file",      archive.string(),
                                    "--directory",   folder.string(),  "--transform", "s,^.*/,,",
                                    "--no-anchored", "--no-same-owner"};
  words.insert(words.end(), names.begin(), names.end());
  const CommandResult outcome = run_needed(words, [] { return true; });
  if (outcome.code != 0) throw DataError(url + ": cannot be unpacked: " + first_line(outcome.err));
  for (const std::string& name : names) {
    std::error_code error;
    if (!fs::is_regular_file(fs::symlink_status(folder / name, error)))
      throw DataError(url + ": the archive has no file " + name);
  }
}

}  // namespace sweep
