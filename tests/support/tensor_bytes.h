// The part of a safetensors file that a training determines.
#pragma once

#include "tests/support/test.h"

namespace sweep::test {

/// Returns the values of all tensors of a file, without its header, which has times in it.
inline std::string tensor_bytes(const std::filesystem::path& file) {
  const std::string bytes = read_file(file);
  std::uint64_t header = 0;
  std::memcpy(&header, bytes.data(), sizeof header);
  return bytes.substr(sizeof header + header);
}

/// Says where two texts of bytes differ first.
inline ::testing::AssertionResult same_bytes(const std::string& a, const std::string& b) {
  if (a == b) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << a.size() << " and " << b.size() << " bytes differ from byte "
                                       << std::ranges::mismatch(a, b).in1 - a.begin() << " on";
}

}  // namespace sweep::test
