// The rows of a CSV or TSV file, RFC 4180.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/base/utf8.h"
#include "core/data/readers/dataset_spec.h"
#include "core/data/readers/input_file.h"

namespace sweep {

/// Where a row of a table starts.
struct RowPlace {
  std::string file;
  std::size_t line = 1;
  std::string text() const { return file + ": line " + std::to_string(line); }
};

/// Splits a file into rows and fields. Fields may be quoted, with "" for a quote and with line breaks in
/// them. Lines end with LF, CRLF or CR; lines without a character and a byte order mark are passed over.
/// Blanks belong to a field, a quote inside an unquoted field is a character like others. Not thread-safe.
class CsvRows {
 public:
  /// Fields are separated by whichever of comma, tab and semicolon is most frequent in the first line. The
  /// text becomes UTF-8, from UTF-16 with a byte order mark, or else from `encoding`; without one, from
  /// Latin-1 unless all of the file is UTF-8. `file` must outlive this. Throws DataError.
  CsvRows(InputFile& file, std::optional<TextEncoding> encoding)
      : CsvRows([&file](std::span<std::uint8_t> out) { return file.read(out); }, file.name(), encoding) {}

  /// Fills its argument and returns the argument's size, or less at the end.
  using Read = std::function<std::size_t(std::span<std::uint8_t> out)>;
  /// The same of what `read` gives, which messages call `name`.
  CsvRows(Read read, std::string name, std::optional<TextEncoding> encoding = TextEncoding::kUtf8)
      : read_(std::move(read)), place_{std::move(name)} {
    do read_bytes();
    while (!encoding && !at_end_);
    const std::string_view start(reinterpret_cast<const char*>(bytes_.data()), bytes_.size());
    if (encoding ? *encoding == TextEncoding::kLatin1 : !is_utf8(start)) stored_ = Stored::kLatin1;
    std::size_t mark = 0;
    if (start.starts_with("\xff\xfe") || start.starts_with("\xfe\xff")) {
      stored_ = start.front() == '\xff' ? Stored::kUtf16Little : Stored::kUtf16Big;
      mark = 2;
    } else if (start.starts_with("\xef\xbb\xbf")) {
      stored_ = Stored::kUtf8;
      mark = 3;
    }
    decode(std::span(bytes_).subspan(mark));
    choose_separator();
  }

  /// Reads the next row. Returns false at the end. Throws DataError, naming file and line, for a quoted field
  /// that does not end or is followed by something else, a field of more than 1 MiB, more than 65,536 fields,
  /// and NUL.
  bool next() {
    count_ = 0;
    while (peek() == '\n' || peek() == '\r') end_line();
    if (peek() == kEnd) return false;
    place_.line = line_;
    for (;;) {
      std::string& field = add_field();
      const bool quoted = peek() == '"';
      if (quoted) read_quoted(field);
      int c = peek();
      while (c != kEnd && c != separator_ && c != '\n' && c != '\r') {
        if (quoted) fail("field " + std::to_string(count_) + " goes on behind its closing quote");
        append(field, c);
        ++position_;
        c = peek();
      }
      if (c == separator_) {
        ++position_;
        continue;
      }
      if (c != kEnd) end_line();
      fields_.resize(count_);
      return true;
    }
  }

  /// The fields of the row, valid until the next call.
  const std::vector<std::string>& fields() const { return fields_; }
  /// Where it starts.
  const RowPlace& place() const { return place_; }
  char separator() const { return separator_; }

 private:
  static constexpr int kEnd = -1;
  // Limits how much a missing closing quote can swallow before it is reported.
  static constexpr std::size_t kMaxFieldBytes = 1 << 20;
  static constexpr std::size_t kMaxFields = 65536;

  [[noreturn]] void fail(const std::string& problem) const {
    throw DataError(place_.text() + ": " + problem);
  }

  int peek() {
    if (position_ == buffer_.size()) {
      bytes_.clear();
      read_bytes();
      decode(bytes_);
    }
    return position_ == buffer_.size() ? kEnd : static_cast<unsigned char>(buffer_[position_]);
  }

  // Adds what comes next in the file to bytes_.
  void read_bytes() {
    constexpr std::size_t kPieceBytes = 256 << 10;
    const std::size_t before = bytes_.size();
    bytes_.resize(before + kPieceBytes);
    const std::size_t count = read_(std::span(bytes_).subspan(before));
    bytes_.resize(before + count);
    at_end_ = count < kPieceBytes;
  }

  // Sets buffer_ to `bytes` as UTF-8.
  void decode(std::span<const std::uint8_t> bytes) {
    position_ = 0;
    buffer_.clear();
    if (stored_ == Stored::kUtf8) buffer_.assign(bytes.begin(), bytes.end());
    if (stored_ == Stored::kLatin1) {
      for (const std::uint8_t byte : bytes) append_utf8(byte, buffer_);
    }
    if (stored_ == Stored::kUtf16Little || stored_ == Stored::kUtf16Big) {
      if (bytes.size() % 2 != 0) fail("is cut short: UTF-16 has two bytes per character");
      const std::size_t low = stored_ == Stored::kUtf16Little ? 0 : 1;
      for (std::size_t i = 0; i < bytes.size(); i += 2) {
        const std::uint32_t unit = bytes[i + low] | std::uint32_t{bytes[i + 1 - low]} << 8;
        const bool is_second = unit >= 0xdc00 && unit < 0xe000;
        if (is_second != (first_half_ != 0)) fail("is not UTF-16: half of a pair is alone");
        if (unit >= 0xd800 && unit < 0xdc00) {
          first_half_ = unit;
          continue;
        }
        append_utf8(is_second ? 0x10000 + ((first_half_ - 0xd800) << 10) + (unit - 0xdc00) : unit, buffer_);
        first_half_ = 0;
      }
    }
  }

  void choose_separator() {
    constexpr std::string_view kSeparators = ",\t;";
    std::array<std::size_t, kSeparators.size()> counts{};
    bool quoted = false;
    for (std::size_t i = buffer_.find_first_not_of("\r\n"); i < buffer_.size(); ++i) {
      const char c = buffer_[i];
      if (c == '"') quoted = !quoted;
      if (quoted) continue;
      if (c == '\n' || c == '\r') break;
      if (const std::size_t s = kSeparators.find(c); s != std::string_view::npos) ++counts[s];
    }
    separator_ = kSeparators[static_cast<std::size_t>(std::ranges::max_element(counts) - counts.begin())];
  }

  // Strings of earlier rows are used again, with their memory.
  std::string& add_field() {
    if (count_ == kMaxFields) fail("has more than " + std::to_string(kMaxFields) + " fields");
    if (count_ == fields_.size()) fields_.emplace_back();
    std::string& field = fields_[count_++];
    field.clear();
    return field;
  }

  void append(std::string& field, int c) {
    if (c == 0) fail("holds a NUL: this is not a text file");
    if (field.size() == kMaxFieldBytes) {
      fail("field " + std::to_string(count_) + " has more than 1 MiB; a closing quote may be missing");
    }
    field += static_cast<char>(c);
  }

  void end_line() {
    if (buffer_[position_++] == '\r' && peek() == '\n') ++position_;
    ++line_;
  }

  void read_quoted(std::string& field) {
    ++position_;
    for (;;) {
      const int c = peek();
      if (c == kEnd) fail("field " + std::to_string(count_) + " starts with a quote that is never closed");
      ++position_;
      if (c == '"') {
        if (peek() != '"') return;
        ++position_;
      }
      const bool ends_line = c == '\n' || (c == '\r' && peek() != '\n');
      if (ends_line) ++line_;
      append(field, c);
    }
  }

  Read read_;
  RowPlace place_;
  enum class Stored { kUtf8, kLatin1, kUtf16Little, kUtf16Big } stored_ = Stored::kUtf8;
  std::uint32_t first_half_ = 0;     // of a pair of UTF-16
  std::vector<std::uint8_t> bytes_;  // a piece of the file
  bool at_end_ = false;
  std::string buffer_;  // the same as UTF-8
  std::size_t position_ = 0;
  char separator_ = ',';
  std::size_t line_ = 1;
  std::size_t count_ = 0;  // fields of this row
  std::vector<std::string> fields_;
};

}  // namespace sweep
