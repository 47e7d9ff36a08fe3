#include "tbwriter/event_reader.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "core/base/error.h"
#include "core/base/file.h"
#include "tbwriter/record.h"

namespace sweep::tbwriter {
namespace {

// Size of a read: doubles from the first to the second, so that small files need little
// memory and large ones few calls.
constexpr std::size_t kFirstChunk = std::size_t{1} << 12, kMaxChunk = std::size_t{1} << 20;

bool only_zeros(std::string_view bytes) { return bytes.find_first_not_of('\0') == std::string_view::npos; }

}  // namespace

const char* describe(ReadEnd end) {
  switch (end) {
    case ReadEnd::kEnd:
      return "is whole";
    case ReadEnd::kTornTail:
      return "ends within a record";
    case ReadEnd::kZeroTail:
      return "ends in zero bytes";
    case ReadEnd::kBadPayload:
      return "has a damaged record";
    case ReadEnd::kBadLength:
      return "has a damaged length; what follows cannot be read";
  }
  return "";
}

EventReader::EventReader(const std::filesystem::path& file) : name_(file.string()), chunk_(kFirstChunk) {
  stream_ = open_regular_stream(file);
}

EventReader::EventReader(std::unique_ptr<std::istream> stream, std::string name)
    : name_(std::move(name)), stream_(std::move(stream)), chunk_(kFirstChunk) {}

bool EventReader::read_more(std::size_t wanted) {
  buffer_.erase(0, begin_);
  begin_ = 0;
  while (buffer_.size() < wanted) {
    const std::size_t before = buffer_.size();
    // By chunks: a damaged file may promise more bytes than it has.
    buffer_.resize(before + chunk_);
    chunk_ = std::min(2 * chunk_, kMaxChunk);
    stream_->clear();  // The file may have grown since its end was reached.
    errno = 0;
    stream_->read(buffer_.data() + before, static_cast<std::streamsize>(buffer_.size() - before));
    const auto got = static_cast<std::size_t>(stream_->gcount());
    buffer_.resize(before + got);
    if (stream_->bad()) throw ReadError(name_ + ": cannot read: " + std::strerror(errno));
    if (got == 0) return false;
  }
  return true;
}

std::optional<std::string_view> EventReader::next() {
  damaged_ = 0;
  while (!stopped_) {
    const std::string_view rest = std::string_view(buffer_).substr(begin_);
    const RecordView record = read_record(rest);
    switch (record.state) {
      case RecordView::State::kWhole:
        begin_ += record.size;
        position_ += record.size;
        return record.payload;
      case RecordView::State::kIncomplete: {
        if (read_more(std::max(record.size, kRecordHeader))) continue;
        end_ = buffer_.empty() ? ReadEnd::kEnd : ReadEnd::kTornTail;
        return std::nullopt;
      }
      case RecordView::State::kBadPayload:
        damaged_ = record.size;
        end_ = ReadEnd::kBadPayload;
        return std::nullopt;
      case RecordView::State::kBadLength:
        stopped_ = true;
        end_ = rest_is_zero() ? ReadEnd::kZeroTail : ReadEnd::kBadLength;
        return std::nullopt;
    }
  }
  return std::nullopt;
}

bool EventReader::rest_is_zero() {
  do {
    if (!only_zeros(std::string_view(buffer_).substr(begin_))) return false;
    begin_ = buffer_.size();
  } while (read_more(1));
  return true;
}

bool EventReader::skip_record() {
  if (damaged_ == 0) return false;
  begin_ += damaged_;
  position_ += damaged_;
  damaged_ = 0;
  return true;
}

FileCheck check_events_file(const std::filesystem::path& file) {
  EventReader reader(file);
  FileCheck check;
  while (reader.next()) ++check.records;
  check.bytes = reader.position();
  check.end = reader.end();
  std::error_code error;
  check.size = std::filesystem::file_size(file, error);
  return check;
}

}  // namespace sweep::tbwriter
