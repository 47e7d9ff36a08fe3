// The rows of a CSV or TSV file, RFC 4180.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/data/readers/array_values.h"
#include "core/data/readers/dataset_spec.h"

namespace sweep {

/// Where a row of a table starts.
struct RowPlace {
  std::string file;
  std::size_t line = 1;
  std::string text() const { return file + ": line " + std::to_string(line); }
};

/// Splits a file into rows and fields. Fields may be quoted, with "" for a quote and with line breaks in
/// them. Lines end with LF, CRLF or CR; lines without a character, a byte order mark and a first line
/// "sep=;", which Excel understands, are passed over. Blanks belong to a field, a quote inside an unquoted
/// field is a character like others. Not thread-safe.
class CsvRows {
 public:
  /// Fields are separated by whichever of comma, tab and semicolon is most frequent in the first line. The
  /// text becomes UTF-8, from UTF-16 with a byte order mark, or else from `encoding`; without one, from
  /// Latin-1 unless all of the file is UTF-8. Throws DataError.
  explicit CsvRows(ByteSource source, std::optional<TextEncoding> encoding = TextEncoding::kUtf8);

  /// Reads the next row. Returns false at the end. Throws DataError, naming file and line, for a quoted field
  /// that does not end or is followed by something else, a field of more than 1 MiB, more than 65,536 fields,
  /// and NUL.
  bool next();

  /// The fields of the row, valid until the next call.
  const std::vector<std::string>& fields() const { return fields_; }
  /// Where it starts.
  const RowPlace& place() const { return place_; }
  char separator() const { return separator_; }

 private:
  int peek();
  void read_bytes();
  void decode(std::span<const std::uint8_t> bytes);
  void choose_separator();
  std::string& add_field();
  void append(std::string& field, int c);
  void end_line();
  void read_quoted(std::string& field);

  ByteSource source_;
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
