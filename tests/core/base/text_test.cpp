#include "core/base/text.h"

#include "core/base/enum_names.h"
#include "core/base/printable.h"
#include "core/base/suggest.h"
#include "core/base/utf8.h"
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

enum class Fruit { kApple, kPear };

TEST(EnumNames, GoBothWaysAndListWhatIsAllowed) {
  const EnumNames<Fruit> names("fruit", {"apple", "pear"});
  EXPECT_EQ(names.of(Fruit::kPear), "pear");
  for (const std::string& name : names.all()) EXPECT_EQ(names.of(names.parse(name)), name);
  EXPECT_EQ(names.find("plum"), std::nullopt);
  EXPECT_EQ(test::message_of<ConfigError>([&] { names.parse("plum"); }),
            "unknown fruit \"plum\"; allowed: apple, pear");
}

const std::vector<std::string> kNames = {"batch_size", "num_workers", "shuffle", "device", "lr"};

TEST(NearestName, FindsWhatATypingMistakeMeant) {
  EXPECT_EQ(nearest_name("batchsize", kNames), "batch_size");
  EXPECT_EQ(nearest_name("suffle", kNames), "shuffle");
  EXPECT_EQ(nearest_name("DEVICE", kNames), "device");
  EXPECT_EQ(nearest_name("num_wrokers", kNames), "num_workers");
  EXPECT_EQ(nearest_name("rl", kNames), "lr");
  EXPECT_EQ(nearest_name("Num", kNames), "num_workers");
  EXPECT_EQ(nearest_name("batch", std::vector<std::string>{"catch", "batch_size"}), "catch")
      << "as near, and earlier";
  EXPECT_EQ(nearest_name("shuffle_each_epoch", kNames), "shuffle");
  EXPECT_EQ(nearest_name("shuffles2", std::vector<std::string>{"shuffle", "shuffles"}), "shuffles");
}

TEST(NearestName, SaysNothingWhereNothingIsNear) {
  EXPECT_EQ(nearest_name("temperature", kNames), "");
  EXPECT_EQ(nearest_name("", kNames), "");
  EXPECT_EQ(nearest_name("sh", kNames), "");
  EXPECT_EQ(nearest_name("x", {}), "");
  EXPECT_EQ(nearest_name(std::string(100000, 'a'), kNames), "");
}

TEST(DidYouMean, EndsASentenceOrBeginsOne) {
  EXPECT_EQ(did_you_mean("lr"), ", did you mean \"lr\"?");
  EXPECT_EQ(did_you_mean("lr", ". Did"), ". Did you mean \"lr\"?");
  EXPECT_EQ(did_you_mean(""), "");
}

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

// Expected: bytes.decode("utf-8", "replace") of Python 3.
TEST(ValidUtf8, ReplacesWhatIsNotAsPythonDoes) {
  const std::string r = "\xEF\xBF\xBD";
  EXPECT_EQ(valid_utf8("a\xFF"
                       "b"),
            "a" + r + "b");
  EXPECT_EQ(valid_utf8("\xC0\x80"), r + r);                  // overlong
  EXPECT_EQ(valid_utf8("\xE0\x80\x80"), r + r + r);          // overlong
  EXPECT_EQ(valid_utf8("\xED\xA0\x80"), r + r + r);          // surrogate
  EXPECT_EQ(valid_utf8("\xF4\x90\x80\x80"), r + r + r + r);  // above U+10FFFF
  EXPECT_EQ(valid_utf8("\xE2\x82"), r);                      // cut
  EXPECT_EQ(valid_utf8("\xF0\x9F\x98"
                       "x"),
            r + "x");                // cut
  EXPECT_EQ(valid_utf8("\x80"), r);  // continuation without a beginning
}

// Reference decoder, by the definition: decodes, then rejects overlong forms and surrogates.
bool is_valid(const std::string& text) {
  std::size_t i = 0;
  while (i < text.size()) {
    const unsigned first = static_cast<unsigned char>(text[i]);
    const std::size_t n = first < 0x80       ? 1
                          : first >> 5 == 6  ? 2
                          : first >> 4 == 14 ? 3
                          : first >> 3 == 30 ? 4
                                             : 0;
    if (n == 0 || i + n > text.size()) return false;
    unsigned long code = n == 1 ? first : first & (0xFFu >> (n + 1));
    for (std::size_t k = 1; k < n; ++k) {
      const unsigned next = static_cast<unsigned char>(text[i + k]);
      if (next >> 6 != 2) return false;
      code = code << 6 | (next & 0x3F);
    }
    const unsigned long least[] = {0, 0, 0x80, 0x800, 0x10000};
    if (code < least[n] || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) return false;
    i += n;
  }
  return true;
}

TEST(ValidUtf8, OfAnyFourBytesIsValidAndUnchangedIfItWasAndElseTheFirstBadByteIsFound) {
  // Bytes at every boundary of the standard's table.
  const unsigned char interesting[] = {0x00, 0x41, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF,
                                       0xC0, 0xC1, 0xC2, 0xDF, 0xE0, 0xE1, 0xEC, 0xED, 0xEE,
                                       0xEF, 0xF0, 0xF1, 0xF3, 0xF4, 0xF5, 0xFF};
  for (const unsigned char a : interesting) {
    for (const unsigned char b : interesting) {
      for (const unsigned char c : interesting) {
        for (const unsigned char d : interesting) {
          const std::string text{static_cast<char>(a), static_cast<char>(b), static_cast<char>(c),
                                 static_cast<char>(d)};
          const std::string clean = valid_utf8(text);
          ASSERT_TRUE(is_valid(clean));
          ASSERT_EQ(clean == text, is_valid(text));
          const std::size_t bad = find_bad_utf8(text);
          ASSERT_EQ(bad == std::string::npos, is_valid(text));
          if (bad == std::string::npos) continue;
          ASSERT_TRUE(is_valid(text.substr(0, bad)));
          for (std::size_t size = 1; size <= 4; ++size) ASSERT_FALSE(is_valid(text.substr(bad, size)));
        }
      }
    }
  }
}

TEST(AppendUtf8, WritesWhatIsDecodedAgain) {
  for (const char32_t code :
       {0x0u, 0x7Fu, 0x80u, 0x7FFu, 0x800u, 0xD7FFu, 0xE000u, 0xFFFFu, 0x10000u, 0x10FFFFu}) {
    std::string text;
    append_utf8(code, text);
    const Utf8Character character = first_utf8_character(text);
    EXPECT_TRUE(character.is_valid);
    EXPECT_EQ(character.code, code);
    EXPECT_EQ(character.bytes, text.size());
  }
}

}  // namespace sweep::text_test
