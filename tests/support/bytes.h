// Numbers as bytes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace sweep::test {

/// The lowest `bytes` bytes of a number, the lowest first.
inline std::string little_endian(std::uint64_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> (8 * i));
  return text;
}

/// The same with the highest first.
inline std::string big_endian(std::uint64_t value, int bytes) {
  std::string text = little_endian(value, bytes);
  std::reverse(text.begin(), text.end());
  return text;
}

/// Values of any type as they lie in memory.
template <typename T>
std::string bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

}  // namespace sweep::test
