#include "core/data/readers/csv_rows.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "core/base/error.h"
#include "core/base/utf8.h"

namespace sweep {
namespace {

constexpr int kEnd = -1;
// Limits how much a missing closing quote can swallow before it is reported.
constexpr std::size_t kMaxFieldBytes = 1 << 20;
constexpr std::size_t kMaxFields = 65536;

}  // namespace

CsvRows::CsvRows(ByteSource source, std::optional<TextEncoding> encoding)
    : source_(std::move(source)), place_{source_.name} {
  do {
    read_bytes();
  } while (!encoding && !at_end_);
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
  // Excel's line "sep=;" says how the others are separated.
  if (buffer_.starts_with(std::string("sep=") + separator_) && buffer_.find_first_of("\r\n") == 5) {
    position_ = 5;
    end_line();
  }
}

bool CsvRows::next() {
  const auto is_plain = [this](char c) { return c != separator_ && c != '\n' && c != '\r' && c != '\0'; };
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
      if (quoted) refuse(place_.text(), "field {} goes on after its closing quote", count_);
      append(field, c);
      const std::size_t first = ++position_,
                        end = std::min(buffer_.size(), first + kMaxFieldBytes - field.size());
      while (position_ < end && is_plain(buffer_[position_])) ++position_;
      field.append(buffer_, first, position_ - first);
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

int CsvRows::peek() {
  if (position_ == buffer_.size()) {
    bytes_.clear();
    read_bytes();
    decode(bytes_);
  }
  return position_ == buffer_.size() ? kEnd : static_cast<unsigned char>(buffer_[position_]);
}

// Adds what comes next in the file to bytes_.
void CsvRows::read_bytes() {
  constexpr std::size_t kPieceBytes = 256 << 10;
  const std::size_t before = bytes_.size();
  bytes_.resize(before + kPieceBytes);
  const std::size_t count = source_.read(std::span(bytes_).subspan(before));
  bytes_.resize(before + count);
  at_end_ = count < kPieceBytes;
}

// Sets buffer_ to `bytes` as UTF-8.
void CsvRows::decode(std::span<const std::uint8_t> bytes) {
  position_ = 0;
  buffer_.clear();
  if (stored_ == Stored::kUtf8) buffer_.assign(bytes.begin(), bytes.end());
  if (stored_ == Stored::kLatin1) {
    for (const std::uint8_t byte : bytes) append_utf8(byte, buffer_);
  }
  if (stored_ == Stored::kUtf16Little || stored_ == Stored::kUtf16Big) {
    const bool is_cut = bytes.empty() ? first_half_ != 0 : bytes.size() % 2 != 0;
    if (is_cut) refuse(place_.text(), "is cut short in a character of UTF-16");
    const std::size_t low = stored_ == Stored::kUtf16Little ? 0 : 1;
    for (std::size_t i = 0; i < bytes.size(); i += 2) {
      const std::uint32_t unit = bytes[i + low] | std::uint32_t{bytes[i + 1 - low]} << 8;
      const bool is_second = unit >= 0xdc00 && unit < 0xe000;
      if (is_second != (first_half_ != 0)) refuse(place_.text(), "is not UTF-16: half of a pair is alone");
      if (unit >= 0xd800 && unit < 0xdc00) {
        first_half_ = unit;
        continue;
      }
      append_utf8(is_second ? 0x10000 + ((first_half_ - 0xd800) << 10) + (unit - 0xdc00) : unit, buffer_);
      first_half_ = 0;
    }
  }
}

void CsvRows::choose_separator() {
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
std::string& CsvRows::add_field() {
  if (count_ == kMaxFields) refuse(place_.text(), "has more than {} fields", kMaxFields);
  if (count_ == fields_.size()) fields_.emplace_back();
  std::string& field = fields_[count_++];
  field.clear();
  return field;
}

void CsvRows::append(std::string& field, int c) {
  if (c == 0) refuse(place_.text(), "holds a NUL: this is not a text file");
  if (field.size() == kMaxFieldBytes)
    refuse(place_.text(), "field {} has more than 1 MiB; a closing quote may be missing", count_);
  field += static_cast<char>(c);
}

void CsvRows::end_line() {
  if (buffer_[position_++] == '\r' && peek() == '\n') ++position_;
  ++line_;
}

void CsvRows::read_quoted(std::string& field) {
  ++position_;
  for (;;) {
    const int c = peek();
    if (c == kEnd) refuse(place_.text(), "field {} starts with a quote that is never closed", count_);
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

}  // namespace sweep
