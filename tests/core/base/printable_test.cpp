#include "core/base/printable.h"

#include "tests/support/test.h"

namespace sweep::printable_test {

TEST(Printable, LeavesTextAsItIs) {
  for (const char* text : {"", "lr=0.1\n\tnext", "größer ★ 学习 👍", "\\u0000"})
    EXPECT_EQ(printable(text), text);
}

TEST(Printable, EscapesWhatATerminalObeys) {
  EXPECT_EQ(printable("a\x1b[2Jb"), "a\\u001b[2Jb");
  EXPECT_EQ(printable(std::string_view("\0\r\x7f", 3)), "\\u0000\\u000d\\u007f");
  EXPECT_EQ(printable("\xc2\x9b"
                      "31m"),
            "\\u009b31m");
  EXPECT_EQ(printable("\xe2\x80\xae"
                      "gnp.exe"),
            "\\u202egnp.exe");
  EXPECT_EQ(printable("\xe2\x81\xa6\xd8\x9c"), "\\u2066\\u061c");
}

TEST(Printable, EscapesWhatHasNoWidth) {
  EXPECT_EQ(printable("a\u200bb\u200d\ufeff\u00ad\u2060"), "a\\u200bb\\u200d\\ufeff\\u00ad\\u2060");
}

TEST(Printable, StaysOnOneLineIfAskedTo) { EXPECT_EQ(printable_line("a\nb\tc\x1b"), "a\\nb\\tc\\u001b"); }

TEST(Printable, EscapesBytesThatAreNotUtf8) {
  EXPECT_EQ(printable("\x9b"
                      "31m"),
            "\\x9b31m");
  EXPECT_EQ(printable("\xe2\x80"), "\\xe2\\x80");
  EXPECT_EQ(printable("\xc0\x9b"), "\\xc0\\x9b");           // overlong ESC
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80");  // a surrogate
}

}  // namespace sweep::printable_test
