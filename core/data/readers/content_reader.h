// Reads files that may be gzip-compressed. The content decides whether they are, not the name.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <istream>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace sweep {

/// Computes SHA-256 incrementally. Not thread-safe.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;
  void update(std::span<const std::uint8_t> bytes);
  /// Returns 64 lower-case hexadecimal digits. Call once, after the last update().
  std::string finish();

 private:
  struct Context;
  std::unique_ptr<Context> context_;
};

/// Reads the content of a plain or gzip-compressed stream. Decompresses on the fly: neither the compressed
/// file nor a second copy of the content is held in memory. Not thread-safe.
class ContentReader {
 public:
  /// `in` must be seekable and outlive the reader; `name` begins every error message.
  /// Throws DataError if the stream cannot be read.
  ContentReader(std::istream& in, std::string name);
  ~ContentReader();
  ContentReader(const ContentReader&) = delete;
  ContentReader& operator=(const ContentReader&) = delete;

  /// Fills `out` and returns the number of bytes read: less than out.size() only at the end of the content.
  /// Throws DataError if the compressed data is damaged, truncated or followed by something else.
  std::size_t read(std::span<std::uint8_t> out);

  bool compressed() const { return inflate_ != nullptr; }

  /// Size of the file itself, compressed or not.
  std::uint64_t file_bytes() const { return file_bytes_; }

  /// Upper bound of the content's size in bytes. Check a header against it
  /// before allocating what it asks for.
  std::uint64_t most_content() const;

  /// SHA-256 of what read() returned, as 64 hexadecimal digits. Call once, after the last read().
  std::string sha256() { return digest_.finish(); }

 private:
  struct Inflate;
  void refill();
  std::size_t read_plain(std::span<std::uint8_t> out);
  std::size_t read_compressed(std::span<std::uint8_t> out);

  std::istream& in_;
  std::string name_;
  std::uint64_t file_bytes_ = 0;
  std::vector<std::uint8_t> buffer_;  // bytes of the file; those before position_ are consumed
  std::size_t position_ = 0;
  std::unique_ptr<Inflate> inflate_;  // null for a plain stream
  Sha256 digest_;
};

}  // namespace sweep
