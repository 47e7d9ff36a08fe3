// Reads a file that may be gzip-compressed, which its content tells, not its name.
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

/// SHA-256 of bytes given piece by piece.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;
  void update(std::span<const std::uint8_t> bytes);
  /// 64 hexadecimal digits in lower case. Call once, after the last update().
  std::string finish();

 private:
  struct Context;
  std::unique_ptr<Context> context_;
};

/// The content of a plain or gzip-compressed stream, decompressed on the fly, so that neither the compressed
/// file nor a second copy of the content is ever in memory. Not thread-safe.
class ContentReader {
 public:
  /// `in` must be seekable and outlive the reader; `name` starts every message.
  /// Throws DataError if the stream cannot be read.
  ContentReader(std::istream& in, std::string name);
  ~ContentReader();
  ContentReader(const ContentReader&) = delete;
  ContentReader& operator=(const ContentReader&) = delete;

  /// Fills `out` and returns out.size(), or less if the content ends before. Throws DataError if the
  /// compressed data is damaged, cut short or followed by something else.
  std::size_t read(std::span<std::uint8_t> out);

  bool compressed() const { return inflate_ != nullptr; }

  /// No more content than this can be in the stream: what to check a header against before believing it.
  std::uint64_t most_content() const;

  /// SHA-256 of what read() returned so far.
  std::string sha256() { return digest_.finish(); }

 private:
  struct Inflate;
  void refill();
  std::size_t read_plain(std::span<std::uint8_t> out);
  std::size_t read_compressed(std::span<std::uint8_t> out);

  std::istream& in_;
  std::string name_;
  std::uint64_t file_bytes_ = 0;
  std::vector<std::uint8_t> buffer_;  // bytes of the file, not yet used from position_ on
  std::size_t position_ = 0;
  std::unique_ptr<Inflate> inflate_;  // null for a plain stream
  Sha256 digest_;
};

}  // namespace sweep
