#include "core/data/readers/content_reader.h"

#include <nettle/sha2.h>
#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <new>
#include <utility>

#include "core/base/error.h"

namespace sweep {
namespace {

constexpr std::size_t kBufferBytes = 256 * 1024;
// Content is hashed in pieces of this size, right after inflating them, while they are in the cache.
constexpr std::size_t kPieceBytes = 256 * 1024;
// No deflate stream expands more than this (zlib's technical notes: 1032:1).
constexpr std::uint64_t kLargestExpansion = 1032;

bool starts_gzip(std::span<const std::uint8_t> bytes) {
  return bytes.size() >= 2 && bytes[0] == 0x1f && bytes[1] == 0x8b;
}

}  // namespace

// Uses nettle because it does not allocate: libcrypto 3 crashes if an allocation fails.
struct Sha256::Context {
  sha256_ctx state;
};

Sha256::Sha256() : context_(std::make_unique<Context>()) { sha256_init(&context_->state); }

Sha256::~Sha256() = default;

void Sha256::update(std::span<const std::uint8_t> bytes) {
  sha256_update(&context_->state, bytes.size(), bytes.data());
}

std::string Sha256::finish() {
  std::array<std::uint8_t, SHA256_DIGEST_SIZE> digest;
  sha256_digest(&context_->state, digest.size(), digest.data());
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const std::uint8_t byte : digest) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

struct ContentReader::Inflate {
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

ContentReader::ContentReader(std::istream& in, std::string name) : in_(in), name_(std::move(name)) {
  in_.seekg(0, std::ios::end);
  const std::streamoff end = in_.tellg();
  in_.seekg(0, std::ios::beg);
  if (!in_ || end < 0) throw DataError(name_ + ": cannot be read");
  file_bytes_ = static_cast<std::uint64_t>(end);
  refill();
  if (starts_gzip(buffer_)) inflate_ = std::make_unique<Inflate>();
}

ContentReader::~ContentReader() = default;

std::uint64_t ContentReader::most_content() const {
  return compressed() ? file_bytes_ * kLargestExpansion : file_bytes_;
}

// Refills the consumed buffer with the next bytes of the file. Leaves it empty at the end of the file.
void ContentReader::refill() {
  buffer_.resize(kBufferBytes);
  in_.read(reinterpret_cast<char*>(buffer_.data()), static_cast<std::streamsize>(buffer_.size()));
  if (in_.bad()) throw DataError(name_ + ": cannot be read: " + std::strerror(errno));
  buffer_.resize(static_cast<std::size_t>(in_.gcount()));
  position_ = 0;
}

std::size_t ContentReader::read(std::span<std::uint8_t> out) {
  std::size_t done = 0;
  while (done < out.size()) {
    const auto piece = out.subspan(done, std::min(kPieceBytes, out.size() - done));
    const std::size_t count = compressed() ? read_compressed(piece) : read_plain(piece);
    digest_.update(piece.first(count));
    done += count;
    if (count < piece.size()) break;
  }
  return done;
}

std::size_t ContentReader::read_plain(std::span<std::uint8_t> out) {
  std::size_t done = 0;
  while (done < out.size()) {
    if (position_ == buffer_.size()) refill();
    if (buffer_.empty()) break;
    const std::size_t count = std::min(out.size() - done, buffer_.size() - position_);
    std::memcpy(out.data() + done, buffer_.data() + position_, count);
    position_ += count;
    done += count;
  }
  return done;
}

std::size_t ContentReader::read_compressed(std::span<std::uint8_t> out) {
  z_stream& stream = inflate_->stream;
  stream.next_out = out.data();
  stream.avail_out = static_cast<uInt>(out.size());
  while (stream.avail_out > 0) {
    if (position_ == buffer_.size()) refill();
    if (inflate_->ended) {
      if (buffer_.empty()) break;
      // gzip allows members one after another, as `cat a.gz b.gz` makes them; anything else is damage.
      if (buffer_[position_] != 0x1f) {
        throw DataError(name_ + ": something that is not gzip follows the end of the compressed data");
      }
      inflateReset(&stream);
      inflate_->ended = false;
    }
    if (buffer_.empty()) {
      throw DataError(name_ + ": the compressed data is cut short after " + std::to_string(file_bytes_) +
                      " bytes");
    }
    stream.next_in = buffer_.data() + position_;
    stream.avail_in = static_cast<uInt>(buffer_.size() - position_);
    const int result = inflate(&stream, Z_NO_FLUSH);
    position_ = buffer_.size() - stream.avail_in;
    if (result == Z_STREAM_END) {
      inflate_->ended = true;
    } else if (result == Z_MEM_ERROR) {
      throw std::bad_alloc();
    } else if (result != Z_OK && result != Z_BUF_ERROR) {
      throw DataError(name_ + ": the compressed data is damaged: " +
                      (stream.msg != nullptr ? stream.msg : "it needs a preset dictionary"));
    }
  }
  return out.size() - stream.avail_out;
}

}  // namespace sweep
