// Writes the subset of protobuf's wire format that event files need. Fields that are written in the order of
// their numbers give the same bytes as generated classes. Not part of the installed interface.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

namespace sweep::tbwriter::wire {

static_assert(std::endian::native == std::endian::little, "numbers are copied from memory");

inline void varint(std::string& out, std::uint64_t value) {
  while (value >= 0x80) {
    out.push_back(static_cast<char>(value | 0x80));
    value >>= 7;
  }
  out.push_back(static_cast<char>(value));
}

inline std::size_t varint_size(std::uint64_t value) {
  return static_cast<std::size_t>((std::bit_width(value | 1) + 6) / 7);
}

enum Type : std::uint32_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

inline void key(std::string& out, std::uint32_t field, Type type) { varint(out, field << 3 | type); }

template <class Number>
void raw(std::string& out, Number value) {
  char bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);
  out.append(bytes, sizeof value);
}

// The always_ functions also write default values, as members of a oneof require; the
// others omit them, as proto3 does.

inline void always_integer(std::string& out, std::uint32_t field, std::int64_t value) {
  key(out, field, kVarint);
  varint(out, static_cast<std::uint64_t>(value));
}

inline void integer(std::string& out, std::uint32_t field, std::int64_t value) {
  if (value != 0) always_integer(out, field, value);
}

inline void always_float(std::string& out, std::uint32_t field, float value) {
  key(out, field, kFixed32);
  raw(out, value);
}

inline void always_double(std::string& out, std::uint32_t field, double value) {
  key(out, field, kFixed64);
  raw(out, value);
}

inline void real(std::string& out, std::uint32_t field, double value) {
  if (std::bit_cast<std::uint64_t>(value) != 0) always_double(out, field, value);
}

/// Bytes, text or an embedded message; also an element of a repeated field.
inline void always_bytes(std::string& out, std::uint32_t field, std::string_view value) {
  key(out, field, kBytes);
  varint(out, value.size());
  out += value;
}

inline void bytes(std::string& out, std::uint32_t field, std::string_view value) {
  if (!value.empty()) always_bytes(out, field, value);
}

inline void packed(std::string& out, std::uint32_t field, std::span<const double> values) {
  if (values.empty()) return;
  key(out, field, kBytes);
  varint(out, values.size_bytes());
  out.append(reinterpret_cast<const char*>(values.data()), values.size_bytes());
}

inline void packed(std::string& out, std::uint32_t field, std::span<const std::int64_t> values) {
  if (values.empty()) return;
  std::size_t size = 0;
  for (const std::int64_t value : values) size += varint_size(static_cast<std::uint64_t>(value));
  key(out, field, kBytes);
  varint(out, size);
  for (const std::int64_t value : values) varint(out, static_cast<std::uint64_t>(value));
}

}  // namespace sweep::tbwriter::wire
