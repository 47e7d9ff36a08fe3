// Reads protobuf's wire format field by field, without recursion and copies.
#include "tbwriter/event_reader.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/base/error.h"
#include "core/base/file.h"
#include "tbwriter/message.h"

namespace sweep::tbwriter {
namespace {

// Size of a read: doubles from the first to the second, so that small files need little
// memory and large ones few calls.
constexpr std::size_t kFirstChunk = std::size_t{1} << 12, kMaxChunk = std::size_t{1} << 20;

// One field of a message: `integer` is the value of a varint, `bytes` that of the other types. The as_
// functions return 0 or an empty view if the field has another type, as files of other programs may have.
struct Field {
  std::uint64_t number = 0;
  wire::Type type = wire::kVarint;
  std::uint64_t integer = 0;
  std::string_view bytes = {};

  double as_double() const { return type == wire::kFixed64 ? read<double>() : 0; }
  float as_float() const { return type == wire::kFixed32 ? read<float>() : 0; }
  std::string_view as_bytes() const { return type == wire::kBytes ? bytes : std::string_view(); }
  std::int64_t as_integer() const { return type == wire::kVarint ? static_cast<std::int64_t>(integer) : 0; }

  // The one number of a field that may be repeated and packed.
  template <class Number>
  std::optional<double> only() const {
    if (bytes.size() != sizeof(Number)) return {};
    return static_cast<double>(read<Number>());
  }

 private:
  template <class Number>
  Number read() const {
    Number value;
    std::memcpy(&value, bytes.data(), sizeof value);
    return value;
  }
};

[[noreturn]] void fail() { throw DataError("an event's bytes are no valid message"); }

std::string_view take(std::string_view& rest, std::uint64_t size) {
  if (size > rest.size()) fail();
  const std::string_view bytes = rest.substr(0, static_cast<std::size_t>(size));
  rest.remove_prefix(bytes.size());
  return bytes;
}

std::uint64_t take_varint(std::string_view& rest) {
  std::uint64_t value = 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    const auto byte = static_cast<unsigned char>(take(rest, 1).front());
    value |= static_cast<std::uint64_t>(byte & 0x7F) << shift;
    if (byte < 0x80) return value;
  }
  fail();
}

// Calls use(field) for each field of a message. Throws DataError if the bytes are not a message.
template <class Use>
void each_field(std::string_view rest, Use use) {
  while (!rest.empty()) {
    const std::uint64_t key = take_varint(rest);
    Field field{.number = key >> 3, .type = static_cast<wire::Type>(key & 7)};
    if (field.number == 0 || field.number > 0x1FFFFFFF) fail();
    switch (field.type) {
      case wire::kVarint:
        field.integer = take_varint(rest);
        break;
      case wire::kFixed64:
        field.bytes = take(rest, 8);
        break;
      case wire::kBytes:
        field.bytes = take(rest, take_varint(rest));
        break;
      case wire::kFixed32:
        field.bytes = take(rest, 4);
        break;
      default:
        fail();  // Groups are not used by any message here.
    }
    use(field);
  }
}

// What a tensor with one number has as TensorFlow 2 writes scalars, and the first string of one with text.
void decode_tensor(std::string_view tensor, DecodedValue& value) {
  std::int64_t type = 0;
  Field content;
  std::optional<double> number;
  each_field(tensor, [&](const Field& field) {
    if (field.number == 1) type = field.as_integer();
    if (field.number == 4) content = field;
    if (field.number == 5) number = field.only<float>();
    if (field.number == 6) number = field.only<double>();
    if (field.number == 8 && !value.text) value.text = field.as_bytes();
  });
  if (!number && type == kDtFloat) number = content.only<float>();
  if (!number && type == kDtDouble) number = content.only<double>();
  if (!number && type == kDtInt64) number = content.only<std::int64_t>();
  value.scalar = number;
}

DecodedImage decode_image(std::string_view message) {
  DecodedImage image;
  each_field(message, [&](const Field& field) {
    if (field.number == 1) image.height = field.as_integer();
    if (field.number == 2) image.width = field.as_integer();
    if (field.number == 4) image.bytes = field.as_bytes();
  });
  return image;
}

DecodedValue decode_value(std::string_view message) {
  DecodedValue value;
  std::string_view tensor, metadata, plugin;
  each_field(message, [&](const Field& field) {
    if (field.number == 1) value.tag = field.as_bytes();
    if (field.number == 2 && field.type == wire::kFixed32) value.scalar = field.as_float();
    if (field.number == 4) value.image = decode_image(field.as_bytes());
    if (field.number == 8) tensor = field.as_bytes();
    if (field.number == 9) metadata = field.as_bytes();
  });
  each_field(metadata, [&](const Field& field) {
    if (field.number == 1) plugin = field.as_bytes();
  });
  each_field(plugin, [&](const Field& field) {
    if (field.number == 1) value.plugin = field.as_bytes();
    if (field.number == 2) value.plugin_content = field.as_bytes();
  });
  if (!tensor.empty()) decode_tensor(tensor, value);
  return value;
}

// google.protobuf.Value of a hyperparameter; nothing for null, lists and structures.
std::optional<HParamValue> decode_hparam(std::string_view message) {
  std::optional<HParamValue> value;
  each_field(message, [&](const Field& field) {
    if (field.number == 2) value = field.as_double();
    if (field.number == 3) value = std::string(field.as_bytes());
    if (field.number == 4) value = field.as_integer() != 0;
  });
  return value;
}

void decode_start(std::string_view message, DecodedSession& session) {
  each_field(message, [&](const Field& field) {
    if (field.number == 5) session.start_time = field.as_double();
    if (field.number != 1) return;
    std::string name;
    std::optional<HParamValue> value;
    each_field(field.as_bytes(), [&](const Field& part) {
      if (part.number == 1) name = std::string(part.as_bytes());
      if (part.number == 2) value = decode_hparam(part.as_bytes());
    });
    if (value) session.hparams.emplace_back(std::move(name), *std::move(value));
  });
}

void decode_end(std::string_view message, DecodedSession& session) {
  session.status = SessionStatus::kUnknown;
  each_field(message, [&](const Field& field) {
    if (field.number == 1 && field.as_integer() >= 0 && field.as_integer() <= 3)
      session.status = static_cast<SessionStatus>(field.as_integer());
    if (field.number == 2) session.end_time = field.as_double();
  });
}

}  // namespace

const char* describe(ReadEnd end) {
  constexpr const char* kTexts[] = {"is whole", "ends within a record", "ends in zero bytes",
                                    "has a damaged record",
                                    "has a damaged length; what follows cannot be read"};
  return kTexts[static_cast<std::size_t>(end)];
}

EventReader::EventReader(const std::filesystem::path& file, std::uint64_t begin)
    : path_(file), file_(open_regular_file(file)), chunk_(kFirstChunk), position_(begin) {
  ::lseek(file_.get(), static_cast<off_t>(begin), SEEK_SET);
}

bool EventReader::read_more(std::size_t wanted) {
  buffer_.erase(0, begin_);
  begin_ = 0;
  while (buffer_.size() < wanted) {
    const std::size_t before = buffer_.size();
    // By chunks: a damaged file may promise more bytes than it has.
    buffer_.resize(before + chunk_);
    chunk_ = std::min(2 * chunk_, kMaxChunk);
    std::size_t got = 0;
    try {
      got = read_next(file_.get(), std::as_writable_bytes(std::span(buffer_).subspan(before)), path_);
    } catch (...) {
      // The next call may succeed, and begins where this one did.
      buffer_.resize(before);
      ::lseek(file_.get(), static_cast<off_t>(position_ + before), SEEK_SET);
      throw;
    }
    buffer_.resize(before + got);
    if (got == 0) return false;
  }
  return true;
}

std::optional<std::string_view> EventReader::next() {
  damaged_ = 0;
  while (!stopped_) {
    const std::string_view rest = std::string_view(buffer_).substr(begin_);
    const RecordView record = read_record(rest);
    if (record.end == ReadEnd::kEnd) {
      begin_ += record.size;
      position_ += record.size;
      return record.payload;
    }
    if (record.end == ReadEnd::kTornTail && read_more(std::max(record.size, kRecordHeader))) continue;
    end_ = buffer_.empty() ? ReadEnd::kEnd : record.end;
    if (record.end == ReadEnd::kBadPayload) damaged_ = record.size;
    stopped_ = record.end == ReadEnd::kBadLength;
    if (stopped_ && rest_is_zero()) end_ = ReadEnd::kZeroTail;
    return std::nullopt;
  }
  return std::nullopt;
}

bool EventReader::rest_is_zero() {
  do {
    if (buffer_.find_first_not_of('\0', begin_) != std::string::npos) return false;
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
  return check;
}

DecodedEvent decode_event(std::string_view payload) {
  constexpr std::int64_t kSessionStart = 1;
  DecodedEvent event;
  each_field(payload, [&](const Field& field) {
    if (field.number == 1) event.wall_time = field.as_double();
    if (field.number == 2) event.step = field.as_integer();
    if (field.number == 3) event.file_version = field.as_bytes();
    if (field.number != 5 && field.number != 7) return;
    each_field(field.as_bytes(), [&](const Field& part) {
      if (part.number != 1) return;
      if (field.number == 5) event.values.push_back(decode_value(part.as_bytes()));
      if (field.number == 7) event.session_start = part.as_integer() == kSessionStart;
    });
  });
  return event;
}

bool decode_session(std::string_view plugin_content, DecodedSession& session) {
  bool found = false;
  each_field(plugin_content, [&](const Field& field) {
    if (field.number == 3) decode_start(field.as_bytes(), session);
    if (field.number == 4) decode_end(field.as_bytes(), session);
    found |= field.number == 3 || field.number == 4;
  });
  return found;
}

}  // namespace sweep::tbwriter
