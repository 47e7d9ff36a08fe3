// The rows of a CSV or TSV file, RFC 4180.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/data/readers/dataset_spec.h"
#include "core/data/readers/input_file.h"

namespace sweep {

/// Splits a file into rows and fields. Fields may be quoted, with "" for a quote and with line breaks in
/// them. Lines end with LF, CRLF or CR; lines without a character and a byte order mark are passed over.
/// Blanks belong to a field, a quote inside an unquoted field is a character like others. Not thread-safe.
class CsvRows {
 public:
  /// Fields are separated by whichever of comma, tab and semicolon is most frequent in the first line. The
  /// text becomes UTF-8, from `encoding` or from UTF-16 with a byte order mark. `file` must outlive this.
  /// Throws DataError.
  explicit CsvRows(InputFile& file, TextEncoding encoding = TextEncoding::kUtf8);

  /// Reads the next row. Returns false at the end. Throws DataError, naming file and line, for a quoted field
  /// that does not end or is followed by something else, a field of more than 1 MiB, more than 65,536 fields,
  /// and NUL.
  bool next();

  /// The fields of the row, valid until the next call.
  const std::vector<std::string>& fields() const { return fields_; }
  /// Line of the file in which the row starts, from 1.
  std::size_t line() const { return row_line_; }
  char separator() const { return separator_; }

 private:
  static constexpr int kEnd = -1;
  int peek() {
    if (position_ == size_) refill();
    return position_ == size_ ? kEnd : static_cast<unsigned char>(buffer_[position_]);
  }
  void refill();
  void decode(std::span<const std::uint8_t> bytes);
  void choose_separator();
  std::string& add_field();
  void append(std::string& field, int c);
  void read_quoted(std::string& field);
  void end_line();
  [[noreturn]] void fail(const std::string& problem) const;

  InputFile& file_;
  enum class Stored { kUtf8, kLatin1, kUtf16Little, kUtf16Big };
  Stored stored_;
  std::uint32_t first_half_ = 0;     // of a pair of UTF-16
  std::vector<std::uint8_t> bytes_;  // as the file has them
  std::string buffer_;               // the same as UTF-8
  std::size_t position_ = 0;
  std::size_t size_ = 0;  // of what is in the buffer
  char separator_ = ',';
  std::size_t line_ = 1;
  std::size_t row_line_ = 1;
  std::size_t count_ = 0;  // fields of this row
  std::vector<std::string> fields_;
};

}  // namespace sweep
