#include "core/data/readers/input_file.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "core/base/error.h"

namespace sweep {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kHarmlessBytes = 16 << 20;
constexpr std::uint64_t kLargestExpansion = 100;

}  // namespace

std::string quoted_name(std::string_view text) { return '"' + std::string(text) + '"'; }

std::ifstream open_data_file(const fs::path& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::status_known(status) || !fs::exists(status)) {
    throw DataError(path.string() +
                    ": cannot open: " + std::strerror(error ? error.value() : static_cast<int>(ENOENT)));
  }
  // Opening a pipe would wait for a writer.
  if (!fs::is_regular_file(status)) throw DataError(path.string() + ": is not a regular file");
  errno = 0;
  std::ifstream in(path, std::ios::binary);
  if (!in) throw DataError(path.string() + ": cannot open: " + std::strerror(errno));
  return in;
}

std::uint64_t stream_size(std::istream& in, const std::string& name) {
  in.clear();
  in.seekg(0, std::ios::end);
  const std::streamoff end = in.tellg();
  in.seekg(0, std::ios::beg);
  if (!in || end < 0) throw DataError(name + ": cannot be read");
  return static_cast<std::uint64_t>(end);
}

std::vector<std::uint8_t> read_bytes(const fs::path& path, std::uint64_t most_bytes) {
  std::ifstream in = open_data_file(path);
  const std::uint64_t size = stream_size(in, path.string());
  if (size > most_bytes) {
    throw DataError(path.string() + ": has " + std::to_string(size) + " bytes; at most " +
                    std::to_string(most_bytes) + " are allowed");
  }
  std::vector<std::uint8_t> bytes(size);
  in.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(size));
  if (static_cast<std::uint64_t>(in.gcount()) != size) throw DataError(path.string() + ": cannot be read");
  return bytes;
}

std::string file_sha256(const fs::path& path) {
  std::ifstream in = open_data_file(path);
  Sha256 digest;
  std::vector<std::uint8_t> piece(256 << 10);
  while (in) {
    in.read(reinterpret_cast<char*>(piece.data()), static_cast<std::streamsize>(piece.size()));
    digest.update(std::span(piece).first(static_cast<std::size_t>(in.gcount())));
  }
  if (in.bad()) throw DataError(path.string() + ": cannot be read");
  return digest.finish();
}

std::string first_bytes(const fs::path& path, std::size_t count) {
  try {
    InputFile file(path);
    std::string bytes(count, '\0');
    bytes.resize(file.read(std::span(reinterpret_cast<std::uint8_t*>(bytes.data()), count)));
    return bytes;
  } catch (const DataError&) {
    return {};
  }
}

std::vector<fs::path> files_with_ending(const fs::path& directory, const std::vector<std::string>& endings) {
  std::vector<fs::path> files;
  std::error_code error;
  for (fs::directory_iterator it(directory, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    const bool wanted = std::any_of(endings.begin(), endings.end(),
                                    [&](const std::string& ending) { return name.ends_with(ending); });
    std::error_code ignored;
    if (wanted && name.front() != '.' && it->is_regular_file(ignored)) files.push_back(it->path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

InputFile::InputFile(const fs::path& path) : file_(open_data_file(path)), name_(path.string()) {
  most_expanded_ = std::max(kHarmlessBytes, stream_size(file_, name_) * kLargestExpansion);
  content_ = std::make_unique<ContentReader>(file_, name_);
}

InputFile::InputFile(std::istream& in, std::string name) : name_(std::move(name)) {
  most_expanded_ = std::max(kHarmlessBytes, stream_size(in, name_) * kLargestExpansion);
  content_ = std::make_unique<ContentReader>(in, name_);
}

std::size_t InputFile::read(std::span<std::uint8_t> out) {
  const std::size_t count = content_->read(out);
  done_ += count;
  if (done_ > most_expanded_) {
    throw DataError(name_ + ": expands to more than " + std::to_string(kLargestExpansion) +
                    " times its size: such data is refused as a decompression bomb");
  }
  return count;
}

}  // namespace sweep
