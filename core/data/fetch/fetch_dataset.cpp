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
#include "core/data/fetch/tar_reader.h"

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

std::string_view text_of(std::span<const std::uint8_t> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

void check_digest(const std::string& url, const std::string& digest, std::string_view expected) {
  if (expected.empty() || digest == expected) return;
  throw DataError(url + ": is not the published file: its SHA-256 is " + digest + ", expected " +
                  std::string(expected));
}

// Downloads `url` to `path`. Returns the SHA-256 of the file, or "" if options.progress ended it.
std::string download_file(const std::string& url, const fs::path& path, const FetchOptions& options) {
  const FileDescriptor file = open_output_file(path, OutputMode::kNew);
  Sha256 digest;
  DownloadOptions download_options{.most_bytes = options.most_bytes};
  if (options.progress) {
    download_options.progress = [&](std::uint64_t done, std::uint64_t total) {
      return options.progress(path.filename().string(), done, total);
    };
  }
  const bool is_whole = download(url, download_options, [&](std::span<const std::uint8_t> piece) {
    digest.update(piece);
    write_all(file.get(), text_of(piece), path);
  });
  return is_whole ? digest.finish() : "";
}

// Calls `read` with what was downloaded from `url` to `path`. Messages then name the URL: the path is one
// that nobody has seen.
template <typename Read>
void read_download(const std::string& url, const fs::path& path, Read read) {
  try {
    InputFile file(path);
    read(file);
  } catch (const DataError& error) {
    const std::string message = error.what();
    if (!message.starts_with(path.string())) throw;
    throw DataError(url + message.substr(path.string().size()));
  }
}

std::string content_digest(InputFile& file) {
  std::vector<std::uint8_t> piece(kPieceBytes);
  while (file.read(piece) == piece.size()) {
  }
  return file.sha256();
}

// Unpacks the files of `known` from an archive into `folder`. A member is known by the last part of its name,
// so that no name of the archive becomes a path.
void unpack(const KnownDataset& known, InputFile& archive, const std::string& url, const fs::path& folder,
            std::uint64_t most_bytes) {
  TarReader tar(archive);
  std::size_t found = 0;
  std::vector<std::uint8_t> piece(kPieceBytes);
  while (const std::optional<TarMember> member = tar.next()) {
    const std::string name = member->name.substr(member->name.rfind('/') + 1);
    if (std::ranges::find(known.files, name, &KnownFile::name) == known.files.end()) continue;
    if (member->bytes > most_bytes) {
      throw DataError(url + ": its file " + name + " has more than " + std::to_string(most_bytes) +
                      " bytes, which is the most that is allowed");
    }
    if (fs::exists(folder / name)) throw DataError(url + ": holds two files " + name);
    const FileDescriptor file = open_output_file(folder / name, OutputMode::kNew);
    for (std::size_t got = tar.read(piece); got > 0; got = tar.read(piece))
      write_all(file.get(), text_of(std::span(piece).first(got)), folder / name);
    ++found;
  }
  if (found == known.files.size()) return;
  for (const KnownFile& file : known.files) {
    if (!fs::exists(folder / file.name))
      throw DataError(url + ": the archive has no file " + std::string(file.name));
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
    const std::string digest = download_file(urls.front(), archive, options);
    if (digest.empty()) return false;
    check_digest(urls.front(), digest, known.archive.sha256);
    read_download(urls.front(), archive, [&](InputFile& file) {
      unpack(known, file, urls.front(), staging.path(), options.most_bytes);
    });
    for (const KnownFile& file : known.files) files.push_back(staging.path() / file.name);
  } else {
    for (std::size_t i = 0; i < urls.size(); ++i) {
      files.push_back(staging.path() / (std::string(known.files[i].name) + ".gz"));
      std::string digest = download_file(urls[i], files.back(), options);
      if (digest.empty()) return false;
      read_download(urls[i], files.back(), [&](InputFile& file) { digest = content_digest(file); });
      // Mirrors compress in their own ways, so it is the content that counts.
      check_digest(urls[i], digest, known.files[i].sha256);
    }
  }
  place(known, files, directory);
  return true;
}

}  // namespace sweep
