#include "core/base/lines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sweep {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(LinesOf, AreThoseOfGetline) {
  EXPECT_THAT(lines_of("a\nbc\n\nd"), ElementsAre("a", "bc", "", "d"));
  EXPECT_THAT(lines_of("a\n"), ElementsAre("a"));
  EXPECT_THAT(lines_of("\n"), ElementsAre(""));
  EXPECT_THAT(lines_of("a\r\nb"), ElementsAre("a\r", "b"));
  EXPECT_THAT(lines_of(""), IsEmpty());
}

}  // namespace
}  // namespace sweep
