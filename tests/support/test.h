// What nearly every test needs: GoogleTest, the standard library, the matchers, and a few helpers.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "core/base/error.h"
#include "core/base/file.h"

namespace sweep::test {

/// The message of the exception that `action` throws; fails the test if it throws nothing or something else.
template <typename Exception, typename Action>
std::string message_of(Action&& action) {
  try {
    action();
  } catch (const Exception& error) {
    return error.what();
  } catch (const std::exception& error) {
    ADD_FAILURE() << "another exception: " << error.what();
    return "";
  }
  ADD_FAILURE() << "no exception";
  return "";
}

/// `more` behind `first`.
template <typename T>
std::vector<T> joined(std::vector<T> first, const std::vector<T>& more) {
  first.insert(first.end(), more.begin(), more.end());
  return first;
}

/// Bytes written as two hexadecimal digits each.
inline std::string from_hex(const std::string& digits) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < digits.size(); i += 2)
    bytes.push_back(static_cast<char>(std::stoi(digits.substr(i, 2), nullptr, 16)));
  return bytes;
}

/// The same with some bits of a byte changed.
inline std::string flipped(std::string bytes, std::size_t at, int bits = 1) {
  bytes.at(at) = static_cast<char>(bytes[at] ^ bits);
  return bytes;
}

/// Sets an environment variable, or unsets it if `value` is nullptr, and restores it when the object is
/// destroyed.
class Environment {
 public:
  Environment(const char* name, const char* value) : name_(name) {
    if (const char* old = std::getenv(name)) old_ = old;
    set(value);
  }
  Environment(const char* name, const std::string& value) : Environment(name, value.c_str()) {}
  ~Environment() { set(old_ ? old_->c_str() : nullptr); }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  void set(const char* value) const { value != nullptr ? ::setenv(name_, value, 1) : ::unsetenv(name_); }
  const char* name_;
  std::optional<std::string> old_;
};

/// A new empty directory, removed with everything in it at the end of the test.
class TemporaryDirectory : public TemporaryFolder {
 public:
  TemporaryDirectory() : TemporaryFolder(std::filesystem::temp_directory_path() / "sweep-test-") {}

  std::filesystem::path operator/(const std::string& name) const { return path() / name; }

  /// Writes a file, creates the folders it is in, and returns its path. An old file of that name is removed
  /// first, because ext4 flushes a file that is truncated and written again to the disk at once, which is
  /// slow.
  std::filesystem::path write(const std::string& name, std::string_view content) const {
    const std::filesystem::path file = path() / name;
    std::filesystem::create_directories(file.parent_path());
    std::filesystem::remove(file);
    std::ofstream(file, std::ios::binary) << content;
    return file;
  }
};

/// A fixture.
struct InDirectory : ::testing::Test {
  const TemporaryDirectory directory;
};

}  // namespace sweep::test

namespace sweep {

// NOLINTBEGIN(misc-unused-alias-decls,misc-unused-using-decls): the tests use them.
namespace fs = std::filesystem;
using test::Environment, test::flipped, test::joined, test::message_of, test::TemporaryDirectory;
// `::` because some of these tests' helpers are in sweep::testing.
using ::testing::AllOf, ::testing::AnyOf, ::testing::Contains, ::testing::Each, ::testing::ElementsAre,
    ::testing::ElementsAreArray, ::testing::EndsWith, ::testing::Eq, ::testing::FloatEq, ::testing::FloatNear,
    ::testing::Ge, ::testing::Gt, ::testing::HasSubstr, ::testing::IsEmpty, ::testing::Le, ::testing::Lt,
    ::testing::MatchesRegex, ::testing::Ne, ::testing::Not, ::testing::Optional, ::testing::Pair,
    ::testing::Pointwise, ::testing::SizeIs, ::testing::StartsWith, ::testing::ThrowsMessage,
    ::testing::UnorderedElementsAre;
// NOLINTEND(misc-unused-alias-decls,misc-unused-using-decls)

}  // namespace sweep
