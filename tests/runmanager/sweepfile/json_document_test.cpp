// JSON with locations: what is parsed, where it stands, and what is said of text that is not JSON.
#include "runmanager/text/json_document.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <limits>

#include "core/base/error.h"
#include "core/spec/arguments.h"

namespace sweep {
namespace {

using ::testing::HasSubstr;

std::string location_of(const JsonNode& node) { return to_string(*node.location); }

std::string error_of(const std::string& text) {
  try {
    parse_json(text, "f.json");
  } catch (const ConfigError& error) {
    return error.what();
  }
  ADD_FAILURE() << "accepted: " << text;
  return "";
}

TEST(JsonDocument, EveryValueAndKeyKnowsItsLineColumnAndPath) {
  const JsonNode root = parse_json(
      "{\n  \"a\": [1, {\"b\\\"c\": -2.5e3}],\r\n\t\"d\" :null, \"e\": \"x,:]\", \"f\":true}", "f.json");
  EXPECT_EQ(location_of(root), "f.json:1:1");
  EXPECT_EQ(location_of(*root.find("a")), "f.json:2:8: a");
  EXPECT_EQ(location_of(root.find("a")->elements[0]), "f.json:2:9: a.0");
  EXPECT_EQ(location_of(root.find("a")->elements[1]), "f.json:2:12: a.1");
  const JsonMember& inner = root.find("a")->elements[1].members[0];
  EXPECT_EQ(to_string(*inner.key_location), "f.json:2:13: a.1.b\"c");
  EXPECT_EQ(location_of(inner.value), "f.json:2:21: a.1.b\"c");
  EXPECT_EQ(inner.value.text, "-2.5e3");
  EXPECT_EQ(inner.value.number, -2500.0);
  EXPECT_EQ(to_string(*root.find_member("d")->key_location), "f.json:3:2: d");
  EXPECT_EQ(location_of(*root.find("d")), "f.json:3:7: d");
  EXPECT_EQ(location_of(*root.find("e")), "f.json:3:18: e");
  EXPECT_EQ(root.find("e")->text, "x,:]");
  EXPECT_EQ(location_of(*root.find("f")), "f.json:3:30: f");
}

TEST(JsonDocument, ColumnsCountCharactersAndOffsetsCountBytes) {
  const JsonNode root = parse_json("{\"ä€😀\": 1}", "f.json");
  EXPECT_EQ(root.members[0].value.location->column, 9u);
  EXPECT_EQ(root.members[0].value.location->offset, 14u);  // 2 + 3 + 4 bytes for the three characters.
}

TEST(JsonDocument, SkipsTheByteOrderMarkThatSomeEditorsWrite) {
  const JsonNode root = parse_json("\xEF\xBB\xBF{\"a\": 1}", "f.json");
  EXPECT_EQ(root.find("a")->location->column, 7u);
}

TEST(JsonDocument, IntegersBeyond64BitsAreNumbers) {
  const JsonNode root =
      parse_json("[9223372036854775807, -9223372036854775808, 9223372036854775808, 1e2, 1.0]", "f.json");
  EXPECT_EQ(root.elements[0].integer, std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(root.elements[1].integer, std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(root.elements[2].kind, JsonKind::kNumber);
  EXPECT_EQ(root.elements[2].number, 0x1p63);
  EXPECT_EQ(root.elements[3].kind, JsonKind::kNumber);
  EXPECT_EQ(root.elements[4].kind, JsonKind::kNumber);
}

struct BadText {
  const char* name;
  std::string text;
  std::string expected;
  friend void PrintTo(const BadText& bad, std::ostream* out) { *out << bad.text; }
};

class BadJson : public ::testing::TestWithParam<BadText> {};

TEST_P(BadJson, IsExplainedWithItsLocation) {
  EXPECT_THAT(error_of(GetParam().text), HasSubstr(GetParam().expected));
}

INSTANTIATE_TEST_SUITE_P(
    Texts, BadJson,
    ::testing::ValuesIn(std::vector<BadText>{
        {"Empty", "", "f.json:1:1: the file is empty"},
        {"Blank", " \n\t ", "f.json:1:1: the file holds nothing but blanks"},
        {"NoCommaBetweenMembers", "{\"a\": 1\n \"b\": 2}", "f.json:2:2: a comma is missing before this"},
        {"NoCommaBetweenElements", "[1 2]", "f.json:1:4: a comma is missing before this"},
        {"NoCommaAfterALiteral", "[true false]", "f.json:1:7: a comma is missing before this"},
        {"NoColon", "{\"a\" 1}", "f.json:1:6: a colon is missing between the key and its value"},
        {"NoValue", "{\"a\": }", "f.json:1:7: a value is missing after the colon"},
        {"NoFirstElement", "[,1]", "f.json:1:2: a value is missing before this comma"},
        {"OpenString", "{\"name\": \"fashion,\n \"b\": 1}",
         "f.json:1:10: the string that starts here has no closing quote"},
        {"OpenKey", "{\"name: 1}", "f.json:1:2: the string that starts here has no closing quote"},
        {"BareKey", "{name: 1}", "f.json:1:2: a key in double quotes is missing before 'n'"},
        {"BareWord", "{\"a\": adam}", "f.json:1:7: adam is not a value, want a string in double quotes"},
        {"PythonTrue", "{\"a\": True}",
         "f.json:1:7: True is not a value, want a string in double quotes, a number, true, false or null, "
         "did you mean true?"},
        {"PythonNone", "[None]", "did you mean null?"},
        {"NotANumber", "[NaN]", "f.json:1:2: NaN is not a number of JSON, want a finite one"},
        {"Infinity", "[-Infinity]", "f.json:1:2: -Infinity is not a number of JSON"},
        {"NoDigitBeforeThePoint", "[.5]",
         "f.json:1:2: .5 is not a number of JSON, want one like 10, 0.01 or 1e-4"},
        {"NoDigitAfterThePoint", "[1.]", "f.json:1:2: 1. is not a number of JSON"},
        {"LeadingZero", "[01]", "f.json:1:"},
        {"PlusSign", "[+1]", "f.json:1:2: +1 is not a number of JSON"},
        {"TooLargeNumber", "{\"lr\": 1e999}", "f.json:1:8: 1e999 is too large for a number"},
        {"HashComment", "# lr\n{}", "f.json:1:1: comments begin with // or stand between /* and */"},
        {"OpenComment", "{\"a\": 1, /* lr }", "f.json:1:10: the comment that starts here has no closing */"},
        {"BehindComments", "/* a\n */ {\"a\": /**/ x}", "f.json:2:16: x is not a value"},
        {"NothingButAComment", "// {}", "f.json:1:1: the file holds nothing but blanks"},
        {"CommaWithoutAValue", "[ /* 1 */ , ]", "f.json:1:11: a value is missing before this comma"},
        {"TwoCommasAtTheEnd", "[1,,]", "f.json:1:4: a value is missing before this comma"},
        {"CommaBehindAColon", "{\"a\":,}", "f.json:1:6: "},
        {"CommaBehindTheDocument", "{},", "f.json:1:3: "},
        {"SingleQuotes", "{'a': 1}", "f.json:1:2: strings stand in double quotes"},
        {"EndInsideAnObject", "{\"a\": {\"b\": 1}",
         "f.json:1:15: the file ends inside the object that starts at 1:1, want a closing }"},
        {"EndInsideAList", "{\"a\":\n [1, 2",
         "f.json:2:7: the file ends inside the list that starts at 2:2, want a closing ]"},
        {"WrongBracket", "{\"a\": [1}", "f.json:1:9: the list that starts at 1:7 is closed by }, want ]"},
        {"TwoDocuments", "{} {}", "f.json:1:4: the document has ended, but '{' follows"},
        {"NulByteBehindTheEnd", std::string("{}\0", 3), "f.json:1:3: the file holds a NUL byte"},
        {"NulByte", std::string("{\"a\": \0 1}", 10), "f.json:1:7: the file holds a NUL byte"},
        {"NulByteAtTheEnd", std::string("{}\n\0", 4), "f.json:2:1: the file holds a NUL byte"},
        {"NulByteInAString", std::string("[\"a\0b\"]", 7), "f.json:1:4: the file holds a NUL byte"},
        {"TabInAString", "[\"a\tb\"]", "f.json:1:4: a string holds the control character U+0009"},
        {"UnknownEscape", "[\"C:\\data\"]", "f.json:1:5: \\d is no escape of JSON"},
        {"HalfASurrogate", "[\"\\ud800\"]", "does not name a character"},
        {"NotUtf8", "{\"a\": \"\xE4\"}", "f.json:1:8: the byte 0xE4 is not UTF-8"},
        {"OverlongUtf8", "[\"\xC0\xAF\"]", "the byte 0xC0 is not UTF-8"},
        {"Utf16", std::string("\xFF\xFE{\0}\0", 6), "f.json:1:1: the file is UTF-16, want UTF-8"},
        {"Gzip", "\x1F\x8B\x08", "f.json:1:1: the file is compressed with gzip"},
        {"RepeatedKey", "{\"lr\": 1,\n \"lr\": 2}",
         "f.json:2:2: the key \"lr\" stands here twice; the first is at 1:2"},
        {"TooDeep", std::string(65, '['), "f.json:1:65: more than 64 brackets inside each other"},
    }),
    [](const auto& instance) { return instance.param.name; });

TEST(JsonDocument, HasCommentsAndCommasAtTheEndOfListsAndObjects) {
  const JsonNode root = parse_json(
      "// a sweep\n{\"a\": [1, 2 /* 3 */, ], /* \"b\": 2, */\n\"url\": \"http://x/*y*/,]\\\"//\", } // end",
      "f.json");
  EXPECT_EQ(to_json(root).dump(), R"({"a":[1,2],"url":"http://x/*y*/,]\"//"})");
  EXPECT_EQ(root.find("url")->location->line, 3u);
  EXPECT_EQ(root.find("url")->location->column, 8u);
  EXPECT_EQ(parse_json("[/**/]", "f.json").elements.size(), 0u);
}

TEST(JsonDocument, HasNoCommentsInAnOverride) {
  EXPECT_THROW(parse_json("1 // one", "override", false), ConfigError);
  EXPECT_THROW(parse_json("[1,]", "override", false), ConfigError);
}

TEST(JsonDocument, AcceptsSixtyFourBracketsInsideEachOther) {
  const JsonNode root = parse_json(std::string(64, '[') + std::string(64, ']'), "f.json");
  EXPECT_EQ(root.elements.size(), 1u);
}

// A mistake is always a ConfigError with a location inside of the file, whatever the bytes are.
void expect_value_or_located_error(const std::string& text) {
  try {
    parse_json(text, "f.json");
  } catch (const ConfigError& error) {
    std::size_t line = 0, column = 0;
    ASSERT_EQ(std::sscanf(error.what(), "f.json:%zu:%zu: ", &line, &column), 2) << error.what();
    ASSERT_LE(line, 2 + static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n')));
    ASSERT_LE(column, text.size() + 1);
  }
}

const std::string kSample = "{\"a\": [1, -2.5e3, true, null],\n \"b\\n\": {\"c\": \"\\u00e4€\", \"d\": []}}";

TEST(JsonDocument, TextCutAnywhereIsAMistakeWithALocation) {
  for (std::size_t cut = 0; cut < kSample.size(); ++cut) {
    SCOPED_TRACE(cut);
    EXPECT_THROW(parse_json(kSample.substr(0, cut), "f.json"), ConfigError);
    expect_value_or_located_error(kSample.substr(0, cut));
  }
}

TEST(JsonDocument, TextWithAnyByteReplacedIsAValueOrAMistakeWithALocation) {
  for (std::size_t at = 0; at < kSample.size(); ++at) {
    for (int byte = 0; byte < 256; ++byte) {
      std::string text = kSample;
      text[at] = static_cast<char>(byte);
      SCOPED_TRACE(::testing::Message() << "byte " << byte << " at " << at);
      expect_value_or_located_error(text);
    }
  }
}

TEST(JsonDocument, NumbersPrintAsPythonPrintsThem) {
  // repr() of Python 3, without the ".0" of whole numbers.
  EXPECT_EQ(number_text(0.01), "0.01");
  EXPECT_EQ(number_text(1e-5), "1e-05");
  EXPECT_EQ(number_text(0.0001), "0.0001");
  EXPECT_EQ(number_text(1e15), "1000000000000000");
  EXPECT_EQ(number_text(1e16), "1e+16");
  EXPECT_EQ(number_text(0.1 + 0.2), "0.30000000000000004");
  EXPECT_EQ(number_text(1.0 / 3), "0.3333333333333333");
  EXPECT_EQ(number_text(5e-324), "5e-324");
  EXPECT_EQ(number_text(100000), "100000");
  EXPECT_EQ(number_text(0), "0");
}

TEST(FindBadUtf8, FindsTheFirstByteThatIsNotWellFormed) {
  // Limits of each length as in the table of RFC 3629, section 4.
  EXPECT_EQ(
      find_bad_utf8(
          "\x7F \xC2\x80 \xDF\xBF \xE0\xA0\x80 \xED\x9F\xBF \xEF\xBF\xBF \xF0\x90\x80\x80 \xF4\x8F\xBF\xBF"),
      std::string_view::npos);
  for (const char* bad : {"a\x80", "a\xC1\xBF", "a\xE0\x9F\xBF", "a\xED\xA0\x80", "a\xF0\x8F\xBF\xBF",
                          "a\xF4\x90\x80\x80", "a\xF5\x80\x80\x80", "a\xC2", "a\xE2\x82", "a\xFF"}) {
    EXPECT_EQ(find_bad_utf8(bad), 1u) << bad;
  }
}

}  // namespace
}  // namespace sweep
