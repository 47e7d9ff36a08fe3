// Reads protobuf's wire format field by field, without recursion and copies. Not
// part of the installed interface.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

#include "core/base/error.h"
#include "tbwriter/wire.h"

namespace sweep::tbwriter::wire {

/// One field of a message: `integer` is the value of a varint, `bytes` that of the other types. The as_
/// functions return 0 or an empty view if the field has another type, as files of other programs may have.
struct Field {
  std::uint32_t number = 0;
  Type type = kVarint;
  std::uint64_t integer = 0;
  std::string_view bytes = {};

  double as_double() const { return type == kFixed64 ? read<double>() : 0; }
  float as_float() const { return type == kFixed32 ? read<float>() : 0; }
  std::string_view as_bytes() const { return type == kBytes ? bytes : std::string_view(); }
  std::int64_t as_integer() const { return type == kVarint ? static_cast<std::int64_t>(integer) : 0; }

 private:
  template <class Number>
  Number read() const {
    Number value;
    std::memcpy(&value, bytes.data(), sizeof value);
    return value;
  }
};

/// Iterates over the fields of a message. Throws DataError if the bytes are not a message. Not thread-safe.
class Fields {
 public:
  explicit Fields(std::string_view message) : rest_(message) {}

  /// Reads the next field. Returns false at the end.
  bool next(Field& field) {
    if (rest_.empty()) return false;
    const std::uint64_t field_key = read_varint();
    if ((field_key >> 3) == 0 || (field_key >> 3) > 0x1FFFFFFF) fail();
    field = {};
    field.number = static_cast<std::uint32_t>(field_key >> 3);
    field.type = static_cast<Type>(field_key & 7);
    switch (field.type) {
      case kVarint:
        field.integer = read_varint();
        break;
      case kFixed64:
        field.bytes = take(8);
        break;
      case kBytes:
        field.bytes = take(read_varint());
        break;
      case kFixed32:
        field.bytes = take(4);
        break;
      default:
        fail();  // Groups are not used by any message here.
    }
    return true;
  }

 private:
  [[noreturn]] static void fail() { throw DataError("an event's bytes are no valid message"); }

  std::uint64_t read_varint() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      if (rest_.empty()) fail();
      const auto byte = static_cast<unsigned char>(rest_.front());
      rest_.remove_prefix(1);
      value |= static_cast<std::uint64_t>(byte & 0x7F) << shift;
      if (byte < 0x80) return value;
    }
    fail();
  }

  std::string_view take(std::uint64_t size) {
    if (size > rest_.size()) fail();
    const std::string_view bytes = rest_.substr(0, static_cast<std::size_t>(size));
    rest_.remove_prefix(static_cast<std::size_t>(size));
    return bytes;
  }

  std::string_view rest_;
};

}  // namespace sweep::tbwriter::wire
