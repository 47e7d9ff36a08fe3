#include "core/data/fetch/fetch_dataset.h"

#include <algorithm>
#include <chrono>
#include <span>
#include <string_view>
#include <system_error>

#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/temporary_folder.h"
#include "core/data/fetch/download.h"
#include "core/data/readers/input_file.h"

namespace sweep {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kPieceBytes = 256 << 10;

void make_directories(const fs::path& directory) {
  std::error_code error;
  fs::create_directories(directory, error);
  if (error) throw IoError(directory.string() + ": cannot create: " + error.message());
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
  if (expected.empty() || digest == expected) return;
  throw DataError(url + ": is not the published file: its SHA-256 is " + digest + ", expected " +
                  std::string(expected));
}

// Downloads `url` to `path`. Returns whether it is there, and not ended by options.progress.
bool download_file(const std::string& url, const fs::path& path, const FetchOptions& options) {
  DownloadOptions download_options{.most_bytes = options.most_bytes};
  if (options.progress) {
    download_options.progress = [&](std::uint64_t done) {
      return options.progress(path.filename().string(), done);
    };
  }
  return download(url, path, download_options);
}

// The SHA-256 of what a file holds, decompressed. Messages name the URL: the path is one that nobody has
// seen.
std::string content_digest(const std::string& url, const fs::path& path) {
  try {
    InputFile file(path);
    std::vector<std::uint8_t> piece(kPieceBytes);
    while (file.read(piece) == piece.size()) {
    }
    return file.sha256();
  } catch (const DataError& error) {
    const std::string message = error.what();
    if (!message.starts_with(path.string())) throw;
    throw DataError(url + message.substr(path.string().size()));
  }
}

// Moves checked files to their names. A plain file of the same set would be read in place of the compressed
// one, and was found wanting before the download.
void place(const KnownDataset& known, const std::vector<fs::path>& files, const fs::path& directory) {
  sync_files(files);
  make_directories(directory);
  std::error_code error;
  for (const fs::path& file : files) {
    fs::rename(file, directory / file.filename(), error);
    if (error) throw IoError((directory / file.filename()).string() + ": cannot replace: " + error.message());
  }
  if (known.archive.name.empty()) {
    for (const KnownFile& file : known.files) fs::remove(directory / file.name, error);
  }
  sync_directory(directory);
}

}  // namespace

std::vector<std::string> dataset_urls(const KnownDataset& known, const std::string& mirror) {
  std::string start(known.source);
  if (!mirror.empty()) {
    if (!mirror.starts_with("https://") && !mirror.starts_with("file://")) {
      throw ConfigError("SWEEP_DATA_MIRROR: got \"" + mirror +
                        "\", want the beginning of a URL, https://… or file:///…");
    }
    start = mirror + (mirror.ends_with('/') ? "" : "/") + std::string(known.name) + "/";
  }
  if (!known.archive.name.empty()) return {start + std::string(known.archive.name)};
  std::vector<std::string> urls;
  for (const KnownFile& file : known.files) urls.push_back(start + std::string(file.name) + ".gz");
  return urls;
}

bool fetch_dataset(const KnownDataset& known, const fs::path& directory, const FetchOptions& options) {
  const std::vector<std::string> urls = dataset_urls(known, options.mirror);
  const TemporaryFolder staging(prepare_staging(directory));
  std::vector<fs::path> files;
  if (!known.archive.name.empty()) {
    const fs::path archive = staging.path() / known.archive.name;
    if (!download_file(urls.front(), archive, options)) return false;
    check_digest(urls.front(), file_sha256(archive), known.archive.sha256);
    std::vector<std::string> names;
    for (const KnownFile& file : known.files) {
      names.emplace_back(file.name);
      files.push_back(staging.path() / file.name);
    }
    unpack_tar(archive, names, staging.path(), urls.front());
  } else {
    for (std::size_t i = 0; i < urls.size(); ++i) {
      files.push_back(staging.path() / (std::string(known.files[i].name) + ".gz"));
      if (!download_file(urls[i], files.back(), options)) return false;
      // Mirrors compress in their own ways, so it is the content that counts.
      check_digest(urls[i], content_digest(urls[i], files.back()), known.files[i].sha256);
    }
  }
  place(known, files, directory);
  return true;
}

}  // namespace sweep
