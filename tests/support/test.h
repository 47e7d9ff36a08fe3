// What nearly every test needs: GoogleTest, the standard library, the matchers, and a few helpers.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
#include <thread>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "core/base/error.h"
#include "tests/support/environment.h"
#include "tests/support/message_of.h"
#include "tests/support/temporary_directory.h"

namespace sweep {

// NOLINTBEGIN(misc-unused-alias-decls,misc-unused-using-decls): the tests use them.
namespace fs = std::filesystem;
using test::Environment, test::message_of, test::TemporaryDirectory;
// `::` because some of these tests' helpers are in sweep::testing.
using ::testing::AllOf, ::testing::AnyOf, ::testing::Contains, ::testing::Each, ::testing::ElementsAre,
    ::testing::ElementsAreArray, ::testing::EndsWith, ::testing::Eq, ::testing::FloatEq, ::testing::FloatNear,
    ::testing::Ge, ::testing::Gt, ::testing::HasSubstr, ::testing::IsEmpty, ::testing::Le, ::testing::Lt,
    ::testing::MatchesRegex, ::testing::Ne, ::testing::Not, ::testing::Pair, ::testing::Pointwise,
    ::testing::SizeIs, ::testing::StartsWith, ::testing::ThrowsMessage, ::testing::UnorderedElementsAre;
// NOLINTEND(misc-unused-alias-decls,misc-unused-using-decls)

}  // namespace sweep
