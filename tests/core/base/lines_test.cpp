#include "core/base/lines.h"

#include "tests/support/test.h"

namespace sweep::lines_test {

TEST(LinesOf, AreThoseOfGetline) {
  EXPECT_THAT(lines_of("a\nbc\n\nd"), ElementsAre("a", "bc", "", "d"));
  EXPECT_THAT(lines_of("a\n"), ElementsAre("a"));
  EXPECT_THAT(lines_of("\n"), ElementsAre(""));
  EXPECT_THAT(lines_of("a\r\nb"), ElementsAre("a\r", "b"));
  EXPECT_THAT(lines_of(""), IsEmpty());
}

}  // namespace sweep::lines_test
