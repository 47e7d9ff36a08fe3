// Writes the subset of protobuf's wire format that event files need. Fields that are written in the order of
// their numbers give the same bytes as generated classes. Not part of the installed interface.
#pragma once

#include <bit>
#include <concepts>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "core/base/utf8.h"

namespace sweep::tbwriter {

/// TensorFlow's DataType: of the numbers in a TensorProto, and of a node's output.
inline constexpr int kDtFloat = 1, kDtDouble = 2, kDtInt32 = 3, kDtUint8 = 4, kDtString = 7, kDtInt64 = 9,
                     kDtHalf = 19;

namespace wire {

static_assert(std::endian::native == std::endian::little, "numbers are copied from memory");

enum Type : std::uint32_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

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

template <class Number>
void raw(std::string& out, Number value) {
  char bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);
  out.append(bytes, sizeof value);
}

}  // namespace wire

/// A message that is encoded field by field, in the order of the calls. integer(), real(), bytes(), text()
/// and packed() omit default values, as proto3 does; always() and message() write them too, as members of a
/// oneof and elements of a repeated field require. Field numbers are below 16, so that a key is one byte.
class Message {
 public:
  Message() : out_(own_) {}
  /// Appends the fields to `out`.
  explicit Message(std::string& out) : out_(out) {}
  Message(const Message&) = delete;
  Message& operator=(const Message&) = delete;

  Message& reserve(std::size_t bytes) {
    out_.reserve(bytes);
    return *this;
  }

  Message& always(std::uint32_t field, std::int64_t value) {
    key(field, wire::kVarint);
    wire::varint(out_, static_cast<std::uint64_t>(value));
    return *this;
  }
  template <std::floating_point Number>
  Message& always(std::uint32_t field, Number value) {
    key(field, sizeof value == 4 ? wire::kFixed32 : wire::kFixed64);
    wire::raw(out_, value);
    return *this;
  }
  Message& integer(std::uint32_t field, std::int64_t value) {
    return value == 0 ? *this : always(field, value);
  }
  Message& real(std::uint32_t field, double value) {
    return std::bit_cast<std::uint64_t>(value) == 0 ? *this : always(field, value);
  }

  /// The key and length of `size` bytes, which the caller appends to what this message is written to.
  Message& head(std::uint32_t field, std::size_t size) {
    key(field, wire::kBytes);
    wire::varint(out_, size);
    return *this;
  }
  Message& message(std::uint32_t field, std::string_view encoded) {
    head(field, encoded.size());
    out_ += encoded;
    return *this;
  }
  Message& bytes(std::uint32_t field, std::string_view value) {
    return value.empty() ? *this : message(field, value);
  }
  /// Replaces invalid UTF-8.
  Message& text(std::uint32_t field, std::string_view value) { return bytes(field, valid_utf8(value)); }

  /// encode(element) of each element.
  template <class Range, class Encode>
  Message& repeated(std::uint32_t field, const Range& range, Encode encode) {
    for (const auto& element : range) message(field, encode(element));
    return *this;
  }
  template <std::floating_point Number>
  Message& packed(std::uint32_t field, std::span<const Number> values) {
    return bytes(field, {reinterpret_cast<const char*>(values.data()), values.size_bytes()});
  }
  Message& packed(std::uint32_t field, std::span<const std::int64_t> values) {
    std::string varints;
    for (const std::int64_t value : values) wire::varint(varints, static_cast<std::uint64_t>(value));
    return bytes(field, varints);
  }

  std::string take() { return std::move(out_); }

 private:
  void key(std::uint32_t field, wire::Type type) { out_.push_back(static_cast<char>(field << 3 | type)); }

  std::string own_;
  std::string& out_;
};

}  // namespace sweep::tbwriter
