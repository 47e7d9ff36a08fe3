#include "core/data/readers/input_file.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <new>
#include <utility>

#include "core/base/error.h"
#include "core/base/mapped_file.h"
#include "core/base/text.h"

namespace sweep {
namespace {

namespace fs = std::filesystem;

// Content is hashed in pieces of this size, right after inflating them, while they are in the cache.
constexpr std::size_t kPackedPieceBytes = 256 * 1024;
// Pictures shrink to a third or a tenth; what expands more than this is refused unless it is harmless.
constexpr std::uint64_t kHarmlessBytes = 16 << 20, kMaxExpansion = 100;

std::size_t read_from(const FileDescriptor& file, std::span<std::uint8_t> out, const std::string& name) {
  return read_next(file.get(), std::as_writable_bytes(out), name);
}

}  // namespace

struct InputFile::Inflate {
  z_stream stream{};
  bool ended = false;  // the last member's checksum has been verified
  Inflate() {
    constexpr int kGzipOnly = 16;
    if (inflateInit2(&stream, MAX_WBITS + kGzipOnly) != Z_OK) throw std::bad_alloc();
  }
  Inflate(const Inflate&) = delete;
  Inflate& operator=(const Inflate&) = delete;
  ~Inflate() { inflateEnd(&stream); }
};

std::string quoted_name(std::string_view text) { return fmt::format("\"{}\"", text); }

std::string listed_names(std::span<const std::string> names, std::size_t most) {
  std::string text;
  for (const std::string& name : names.first(std::min(names.size(), most)))
    text += (text.empty() ? "" : ", ") + quoted_name(name);
  return text + (names.size() > most ? " and " + std::to_string(names.size() - most) + " more" : "");
}

std::string without_path(const std::string& message, const fs::path& path) {
  const std::string start = path.string() + ": ";
  return message.starts_with(start) ? message.substr(start.size()) : message;
}

std::vector<std::uint8_t> read_bytes(const fs::path& path, std::uint64_t max_bytes) {
  const FileDescriptor file = open_regular_file(path);
  const std::uint64_t size = file_bytes(file.get(), path);
  if (size > max_bytes) refuse(path, "has {} bytes; at most {} are allowed", size, max_bytes);
  std::vector<std::uint8_t> bytes(size);
  if (read_from(file, bytes, path.string()) != size)
    refuse<ReadError>(path, "cannot read: it has become shorter meanwhile");
  return bytes;
}

std::string file_sha256(const fs::path& path) {
  const FileDescriptor file = open_regular_file(path);
  Sha256 digest;
  std::vector<std::uint8_t> piece(kPackedPieceBytes);
  while (const std::size_t count = read_from(file, piece, path.string()))
    digest.update(std::span(piece).first(count));
  return digest.finish();
}

std::string first_bytes(const fs::path& path, std::size_t count) {
  try {
    return InputFile(path).read_text(count);
  } catch (const DataError&) {
    return {};
  }
}

std::vector<std::string> visible_names(const fs::path& directory, std::string* problem) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator it(directory, error), end; !error && it != end; it.increment(error)) {
    std::string name = it->path().filename().string();
    if (name.front() != '.') names.push_back(std::move(name));
  }
  if (problem != nullptr) *problem = error ? "cannot be read: " + error.message() : "";
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<fs::path> files_with_ending(const fs::path& directory, const std::vector<std::string>& endings) {
  std::vector<fs::path> files;
  for (const std::string& name : visible_names(directory)) {
    const std::string lower = lower_case(name);
    const bool wanted =
        std::ranges::any_of(endings, [&](const std::string& ending) { return lower.ends_with(ending); });
    std::error_code error;
    if (wanted && fs::is_regular_file(directory / name, error)) files.push_back(directory / name);
  }
  return files;
}

std::vector<fs::path> files_in(std::span<const fs::path> paths, const std::vector<std::string>& endings) {
  std::vector<fs::path> files;
  for (const fs::path& path : paths) {
    std::error_code error;
    if (!fs::is_directory(path, error)) {
      files.push_back(path);
      continue;
    }
    const std::vector<fs::path> inside = files_with_ending(path, endings);
    if (inside.empty()) refuse(path, "holds no files called *{}", endings.front());
    files.insert(files.end(), inside.begin(), inside.end());
  }
  if (files.empty()) throw DataError("no files are given");
  return files;
}

const fs::path& only_path(std::span<const fs::path> paths, std::string_view format) {
  if (paths.size() == 1) return paths.front();
  refuse(format, "expected one path, found {}", paths.size());
}

void check_memory(std::uint64_t count, const Shape& shape, std::size_t value_bytes, const std::string& name) {
  const std::uint64_t max_bytes = usable_memory();
  std::uint64_t bytes = 0;
  bool fits = !__builtin_mul_overflow(count, std::uint64_t{value_bytes}, &bytes);
  for (const std::int64_t extent : shape) {
    fits = fits && !__builtin_mul_overflow(bytes, static_cast<std::uint64_t>(extent), &bytes);
  }
  if (fits && bytes <= max_bytes) return;
  refuse(name, "{} samples of shape {} need {} bytes; at most {} are allowed", count, to_string(shape),
         fits ? std::to_string(bytes) : "more than 2^64", max_bytes);
}

void refuse_bomb(const std::string& name, std::uint64_t content_bytes, std::uint64_t stored_bytes) {
  if (content_bytes <= kHarmlessBytes || content_bytes / kMaxExpansion <= stored_bytes) return;
  refuse(name, "expands to more than {} times its size: such data is refused as a decompression bomb",
         kMaxExpansion);
}

InputFile::InputFile(const fs::path& path, std::string name)
    : file_(open_regular_file(path)), name_(std::move(name)), file_bytes_(file_bytes(file_.get(), name_)) {
  std::array<std::uint8_t, 2> start{};
  const bool is_read = retry_interrupted([&] { return ::pread(file_.get(), start.data(), 2, 0); }) == 2;
  if (is_read && start[0] == 0x1f && start[1] == 0x8b) inflate_ = std::make_unique<Inflate>();
}

InputFile::~InputFile() = default;

std::uint64_t InputFile::max_content() const {
  if (inflate_ == nullptr) return file_bytes_;
  return std::min(file_bytes_ * kDeflateExpansion, std::max(kHarmlessBytes, file_bytes_ * kMaxExpansion));
}

std::size_t InputFile::read(std::span<std::uint8_t> out) {
  std::size_t count = 0;
  while (count < out.size()) {
    const auto piece = out.subspan(count, std::min(kPackedPieceBytes, out.size() - count));
    const std::size_t got = inflate_ == nullptr ? read_from(file_, piece, name_) : read_compressed(piece);
    digest_.update(piece.first(got));
    count += got;
    if (got < piece.size()) break;
  }
  done_ += count;
  if (inflate_ != nullptr) refuse_bomb(name_, done_, file_bytes_);
  return count;
}

std::string InputFile::sha256() {
  std::vector<std::uint8_t> piece(kPackedPieceBytes);
  while (read(piece) == piece.size()) {
  }
  return digest_.finish();
}

std::string InputFile::read_text(std::size_t count) {
  std::string text(count, '\0');
  text.resize(read(std::span(reinterpret_cast<std::uint8_t*>(text.data()), count)));
  return text;
}

std::size_t InputFile::read_compressed(std::span<std::uint8_t> out) {
  z_stream& stream = inflate_->stream;
  stream.next_out = out.data();
  stream.avail_out = static_cast<uInt>(out.size());
  while (stream.avail_out > 0) {
    if (position_ == buffer_.size()) {
      buffer_.resize(kPackedPieceBytes);
      buffer_.resize(read_from(file_, buffer_, name_));
      position_ = 0;
    }
    if (inflate_->ended) {
      if (buffer_.empty()) break;
      // gzip allows members one after another, as `cat a.gz b.gz` makes them; anything else is damage.
      if (buffer_[position_] != 0x1f)
        refuse(name_, "something that is not gzip follows the end of the compressed data");
      inflateReset(&stream);
      inflate_->ended = false;
    }
    if (buffer_.empty()) refuse(name_, "the compressed data is cut short after {} bytes", file_bytes_);
    stream.next_in = buffer_.data() + position_;
    stream.avail_in = static_cast<uInt>(buffer_.size() - position_);
    const int result = inflate(&stream, Z_NO_FLUSH);
    position_ = buffer_.size() - stream.avail_in;
    if (result == Z_STREAM_END) {
      inflate_->ended = true;
    } else if (result == Z_MEM_ERROR) {
      throw std::bad_alloc();
    } else if (result != Z_OK && result != Z_BUF_ERROR) {
      refuse(name_, "the compressed data is damaged: {}",
             stream.msg != nullptr ? stream.msg : "it needs a preset dictionary");
    }
  }
  return out.size() - stream.avail_out;
}

}  // namespace sweep
