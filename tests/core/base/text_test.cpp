#include "core/base/text.h"

#include "tests/support/test.h"

namespace sweep::text_test {

TEST(NumberIn, IsTheWholeTextOrNone) {
  EXPECT_EQ(number_in<int>("-12"), -12);
  EXPECT_EQ(number_in<double>("1e-3"), 0.001);
  for (const char* text : {"", " 1", "1 ", "+1", "1.5", "0x1", "2147483648"})
    EXPECT_FALSE(number_in<int>(text)) << text;
  EXPECT_FALSE(number_in<std::size_t>("-1"));
}

TEST(Counted, HasOneThingOrSeveral) {
  EXPECT_EQ(counted(0, "run"), "0 runs");
  EXPECT_EQ(counted(1, "finished run"), "1 finished run");
  EXPECT_EQ(counted(2, "run"), "2 runs");
}

TEST(LowerCase, IsOfAsciiAlone) { EXPECT_EQ(lower_case("AzÄ_9[Z]"), "azÄ_9[z]"); }

TEST(LinesOf, AreThoseOfGetline) {
  EXPECT_THAT(lines_of("a\nbc\n\nd"), ElementsAre("a", "bc", "", "d"));
  EXPECT_THAT(lines_of("a\n"), ElementsAre("a"));
  EXPECT_THAT(lines_of("\n"), ElementsAre(""));
  EXPECT_THAT(lines_of("a\r\nb"), ElementsAre("a\r", "b"));
  EXPECT_THAT(lines_of(""), IsEmpty());
}

}  // namespace sweep::text_test
