#include "core/data/readers/csv_rows.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "core/base/error.h"

namespace sweep {
namespace {

constexpr std::size_t kBufferBytes = 256 << 10;
// Limits how much a missing closing quote can swallow before it is reported.
constexpr std::size_t kMostFieldBytes = 1 << 20;
constexpr std::size_t kMostFields = 65536;

}  // namespace

CsvRows::CsvRows(InputFile& file) : file_(file), buffer_(kBufferBytes) {
  refill();
  const std::string_view start(reinterpret_cast<const char*>(buffer_.data()), size_);
  if (start.starts_with("\xff\xfe") || start.starts_with("\xfe\xff")) {
    throw DataError(file_.name() + ": is in UTF-16; save it as UTF-8");
  }
  if (start.starts_with("\xef\xbb\xbf")) position_ = 3;
  choose_separator();
}

void CsvRows::fail(const std::string& problem) const {
  throw DataError(file_.name() + ": line " + std::to_string(row_line_) + ": " + problem);
}

void CsvRows::refill() {
  size_ = file_.read(buffer_);
  position_ = 0;
}

void CsvRows::choose_separator() {
  constexpr std::string_view kSeparators = ",\t;";
  std::array<std::size_t, kSeparators.size()> counts{};
  bool quoted = false;
  for (std::size_t i = position_; i < size_; ++i) {
    const char c = static_cast<char>(buffer_[i]);
    if (c == '"') quoted = !quoted;
    if (quoted) continue;
    if (c == '\n' || c == '\r') break;
    if (const std::size_t s = kSeparators.find(c); s != std::string_view::npos) ++counts[s];
  }
  separator_ =
      kSeparators[static_cast<std::size_t>(std::max_element(counts.begin(), counts.end()) - counts.begin())];
}

// Strings of earlier rows are used again, with their memory.
std::string& CsvRows::add_field() {
  if (count_ == kMostFields) fail("has more than " + std::to_string(kMostFields) + " fields");
  if (count_ == fields_.size()) fields_.emplace_back();
  std::string& field = fields_[count_++];
  field.clear();
  return field;
}

void CsvRows::append(std::string& field, int c) {
  if (c == 0) fail("holds a NUL: this is not a text file");
  if (field.size() == kMostFieldBytes) {
    fail("field " + std::to_string(count_) + " has more than 1 MiB; a closing quote may be missing");
  }
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

bool CsvRows::next() {
  count_ = 0;
  while (peek() == '\n' || peek() == '\r') end_line();
  if (peek() == kEnd) return false;
  row_line_ = line_;
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

}  // namespace sweep
