#include "core/data/fetch_dataset.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <span>
#include <sstream>
#include <string_view>
#include <system_error>

#include "core/base/child.h"
#include "core/base/error.h"
#include "core/base/file.h"
#include "core/data/readers/input_file.h"

namespace sweep {
namespace {

namespace fs = std::filesystem;

// Runs a program that has to be there.
CommandResult run_needed(const std::vector<std::string>& words, const std::function<bool()>& goes_on) {
  CommandResult result = run_command(words, goes_on);
  if (!result.started) {
    throw DataError(fmt::format(
        "the program {0} is needed and not in PATH. Install it with `apt-get install {0}`", words.front()));
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
import http.client, ssl, sys, urllib.error, urllib.request
url, path, most = sys.argv[1], sys.argv[2], int(sys.argv[3])

def fail(code, text=""):
    print(text, file=sys.stderr)
    sys.exit(code)

def read(read_next, *arguments, **options):
    try:
        return read_next(*arguments, **options)
    except urllib.error.HTTPError as error:
        fail(22, f"The requested URL returned error: {error.code}")
    except http.client.IncompleteRead:
        fail(18, "the connection ended before the end of the file")
    except http.client.InvalidURL as error:
        fail(3, error)
    except http.client.HTTPException as error:
        fail(8, f"no answer of a web server: {error!r}")
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
if getattr(source, "length", None):
    fail(18, f"the connection ended {source.length} bytes before the end of the file")
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

// Downloads `url` to the new file `path`. Only https:// and file:// are possible, and a redirection leads to
// https:// only; certificates are checked. Returns false if options.progress ended it. Throws DataError of
// one line if the URL cannot be reached, names nothing, is too large, makes no progress for a minute, or if
// neither curl nor python3 is installed; IoError if the file cannot be written.
bool download(const std::string& url, const fs::path& path, const FetchOptions& options) {
  constexpr int kCannotWrite = 23, kTooLarge = 63;
  bool ended = false, too_large = false;
  const auto goes_on = [&] {
    std::error_code none_yet;
    const std::uintmax_t bytes = fs::file_size(path, none_yet);
    const std::uint64_t done = none_yet ? 0 : bytes;
    too_large = done > options.most_bytes;
    ended = ended || (options.progress && !options.progress(path.filename().string(), done));
    return !ended && !too_large;
  };
  const CommandResult outcome = run_curl(url, path, options.most_bytes, goes_on);
  goes_on();  // A small file may be there before it was asked for the first time.
  if (ended) return false;
  if (too_large || outcome.code == kTooLarge)
    refuse(url, "has more than {} bytes, which is the most that is allowed", options.most_bytes);
  if (outcome.code == kCannotWrite) refuse<IoError>(path, "cannot write: {}", first_line(outcome.err));
  if (outcome.code != 0) refuse(url, "{}", problem_of(outcome));
  return true;
}

// Unpacks the files called `names` from the tar archive `archive`, plain or compressed, into `folder`. A
// member is known by the last part of its name, so that no name of the archive becomes a path. The archive
// must have been proven by its digest: tar is not made for damaged ones. Throws DataError, which begins with
// `url`.
void unpack_tar(const fs::path& archive, std::span<const std::string_view> names, const fs::path& folder,
                const std::string& url) {
  std::vector<std::string> words = {"tar",           "--extract",      "--file",      archive.string(),
                                    "--directory",   folder.string(),  "--transform", "s,^.*/,,",
                                    "--no-anchored", "--no-same-owner"};
  words.insert(words.end(), names.begin(), names.end());
  const CommandResult outcome = run_needed(words, [] { return true; });
  if (outcome.code != 0) refuse(url, "cannot be unpacked: {}", first_line(outcome.err));
  for (const std::string_view name : names) {
    std::error_code error;
    if (!fs::is_regular_file(fs::symlink_status(folder / name, error)))
      refuse(url, "the archive has no file {}", name);
  }
}

// Where the folder begins that is made beside `directory`, on the same file system, for what is not checked
// yet. Removes those that killed processes have left a day ago or earlier.
fs::path prepare_staging(const fs::path& directory) {
  const fs::path parent = directory.parent_path();
  const std::string start = "." + directory.filename().string() + ".download-";
  make_directories(parent);
  std::error_code error;
  for (fs::directory_iterator it(parent, error), end; !error && it != end; it.increment(error)) {
    std::error_code ignored;
    const fs::file_time_type written = fs::last_write_time(it->path(), ignored);
    const bool is_old = !ignored && fs::file_time_type::clock::now() - written > std::chrono::hours(24);
    if (is_old && it->path().filename().string().starts_with(start)) fs::remove_all(it->path(), ignored);
  }
  return parent / start;
}

void check_digest(const std::string& url, const std::string& digest, std::string_view expected) {
  if (digest != expected)
    refuse(url, "is not the published file: its SHA-256 is {}, expected {}", digest, expected);
}

// The SHA-256 of what a file holds, decompressed. Messages name the URL: the path is one that nobody has
// seen.
std::string content_digest(const std::string& url, const fs::path& path) {
  return InputFile(path, url).sha256();
}

// Moves checked files to their names. A plain file of the same set would be read in place of the compressed
// one, and was found wanting before the download.
void place(const KnownDataset& known, const std::vector<fs::path>& files, const fs::path& directory) {
  sync_files(files);
  make_directories(directory);
  std::error_code error;
  for (const fs::path& file : files) {
    fs::rename(file, directory / file.filename(), error);
    if (error) refuse<IoError>(directory / file.filename(), "cannot replace: {}", error.message());
  }
  if (known.archive.name.empty()) {
    for (const std::string_view name : known.files) fs::remove(directory / name, error);
  }
  sync_directory(directory);
}

}  // namespace

std::vector<std::string> dataset_urls(const KnownDataset& known, const std::string& mirror) {
  std::string start(known.source);
  if (!mirror.empty()) {
    if (!mirror.starts_with("https://") && !mirror.starts_with("file://")) {
      refuse<ConfigError>("SWEEP_DATA_MIRROR",
                          "got \"{}\", want the beginning of a URL, https://… or file:///…", mirror);
    }
    start = fmt::format("{}{}{}/", mirror, mirror.ends_with('/') ? "" : "/", known.name);
  }
  if (!known.archive.name.empty()) return {start + std::string(known.archive.name)};
  std::vector<std::string> urls;
  for (const std::string_view name : known.files) urls.push_back(fmt::format("{}{}.gz", start, name));
  return urls;
}

bool fetch_dataset(const KnownDataset& known, const fs::path& directory, const FetchOptions& options) {
  const std::vector<std::string> urls = dataset_urls(known, options.mirror);
  const TemporaryFolder staging(prepare_staging(directory));
  std::vector<fs::path> files;
  if (!known.archive.name.empty()) {
    const fs::path archive = staging.path() / known.archive.name;
    if (!download(urls.front(), archive, options)) return false;
    check_digest(urls.front(), file_sha256(archive), known.archive.sha256);
    for (const std::string_view name : known.files) files.push_back(staging.path() / name);
    unpack_tar(archive, known.files, staging.path(), urls.front());
  } else {
    for (std::size_t i = 0; i < urls.size(); ++i) {
      files.push_back(staging.path() / (std::string(known.files[i]) + ".gz"));
      if (!download(urls[i], files.back(), options)) return false;
      // Mirrors compress in their own ways, so it is the content that counts.
      check_digest(urls[i], content_digest(urls[i], files.back()), known.digests[i]);
    }
  }
  place(known, files, directory);
  return true;
}

}  // namespace sweep
