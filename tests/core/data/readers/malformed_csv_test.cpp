// Tables with mistakes: the message names file, line and column.

#include "core/data/readers/readers.h"
#include "tests/support/idx_files.h"
#include "tests/support/memory_file.h"

#include "tests/support/test.h"

namespace sweep::malformed_csv_test {

void parse(const std::string& content, const DatasetSpec& options) {
  InputFile file = test::input_file(content);
  read_csv_file(file, {options});
}

std::string error_of(const std::string& content, const DatasetSpec& options = {}) {
  return message_of<DataError>([&] { parse(content, options); });
}

TEST(MalformedCsv, RefusesShortAndLongRows) {
  EXPECT_EQ(error_of("x,y,label\n1,2,a\n\n1,a\n"), "FILE: line 4: has 2 fields, the header has 3");
  EXPECT_EQ(error_of("x,y,label\n1,2,a\n1,2,3,a\n"), "FILE: line 3: has 4 fields, the header has 3");
  EXPECT_EQ(error_of("x,y,label\n1,2,a\n1\n"), "FILE: line 3: has 1 field, the header has 3");
}

TEST(MalformedCsv, RefusesMissingValues) {
  for (const char* missing : {"", "NaN", "nan", "NA", "null", "?", " "}) {
    EXPECT_THAT(error_of(std::string("x,age,label\n1,2,a\n1,") + missing + ",a\n"),
                HasSubstr("FILE: line 3, column \"age\": the value is missing, as \""));
  }
  EXPECT_THAT(error_of("x,label\n1,\n", {.missing = MissingValues::kMean}),
              HasSubstr("line 2, column \"label\": the value is missing"));
  EXPECT_THAT(error_of("x,target\n1,NaN\n", {.missing = MissingValues::kMean}),
              HasSubstr("line 2, column \"target\": the value is missing"));
}

TEST(MalformedCsv, RefusesTextInAColumnOfNumbers) {
  EXPECT_EQ(error_of("x,label\n1,a\n\"tw\no\",b\n"),
            "FILE: line 3, column \"x\": \"tw\no\" is not a number, as the values before are; if they are "
            "names, list "
            "the column under \"categorical\"");
  EXPECT_THAT(error_of("x,label\n1,a\n0x10,b\n"), HasSubstr("\"0x10\" is not a number"));
  EXPECT_THAT(error_of("x,label\n1,a\n1 000,b\n"), HasSubstr("\"1 000\" is not a number"));
  EXPECT_EQ(error_of("x,target\n1,a\n"),
            "FILE: line 2, column \"target\": \"a\" is not a number; classes are named by \"label\"");
}

TEST(MalformedCsv, RefusesNumbersThatAreNotFinite) {
  EXPECT_THAT(error_of("x,label\n1,a\ninf,b\n"),
              HasSubstr("line 3, column \"x\": \"inf\" is not a finite number"));
  EXPECT_THAT(error_of("x,label\n1e999,b\n"), HasSubstr("\"1e999\" is not a finite number"));
  EXPECT_THAT(error_of("x,label\n1e39,b\n"), HasSubstr("\"1e39\" is not a finite number"));
  EXPECT_NO_THROW(parse("x,label\n1e-999,b\n1e-46,a\n-0,b\n", {}));
}

TEST(MalformedCsv, CountsLinesInQuotedFields) {
  EXPECT_THAT(error_of("x,label\n1,\"a\nb\nc\"\nx,a\n"), HasSubstr("line 5, column \"x\""));
  EXPECT_THAT(error_of("x,label\r\n1,\"a\r\nb\r\"\r\nx,a\r\n"), HasSubstr("line 5, column \"x\""));
}

TEST(MalformedCsv, RefusesWrongQuotes) {
  EXPECT_EQ(error_of("x,label\n1,\"a\n2,b\n"),
            "FILE: line 2: field 2 starts with a quote that is never closed");
  EXPECT_EQ(error_of("x,label\n1,\"a\"b\n"), "FILE: line 2: field 2 goes on behind its closing quote");
  EXPECT_THAT(error_of("x,label\n1,\"" + std::string(2 << 20, 'a') + "\"\n"),
              HasSubstr("field 2 has more than 1 MiB; a closing quote may be missing"));
}

TEST(MalformedCsv, RefusesWhatIsNoText) {
  EXPECT_THAT(error_of(std::string("x,label\n1,\0\n", 12)),
              HasSubstr("line 2: holds a NUL: this is not a text file"));
  EXPECT_THAT(
      error_of("x,label\n1,\xe9\n"),
      HasSubstr("line 2, column \"label\": is not UTF-8; if it is Latin-1, set \"encoding\": \"latin-1\""));
  EXPECT_THAT(error_of("\xe9,label\n1,a\n"),
              HasSubstr("the name of column 1 is not UTF-8; if it is Latin-1, set \"encoding\""));
}

TEST(MalformedCsv, RefusesWrongHeaders) {
  EXPECT_EQ(error_of(""), "FILE: is empty, expected a table");
  EXPECT_EQ(error_of("x,label\n"), "FILE: has a header, but no rows");
  EXPECT_EQ(error_of("1,2\n3,4\n"),
            "FILE: line 1 holds numbers; expected a header, the names of the columns");
  EXPECT_EQ(error_of("x,x,label\n1,2,a\n"), "FILE: two columns are called \"x\"");
  EXPECT_EQ(error_of("x,,label\n1,2,a\n"), "FILE: column 2 has no name");
  EXPECT_EQ(error_of("label\na\n"), "FILE: has no column of features");
  EXPECT_THAT(error_of("x,y\n1,2\n"), HasSubstr("has no column \"label\", \"class\" or \"target\""));
}

TEST(MalformedCsv, RefusesSeveralColumnsThatMayBeWhatToPredict) {
  EXPECT_THAT(error_of("a,class,label\n1,p,x\n"),
              HasSubstr("FILE: any of the columns \"label\", \"class\" may be what to predict; name it by"));
  EXPECT_THAT(error_of("a,target,label\n1,2,x\n"), HasSubstr("\"label\", \"target\" may be what to predict"));
  parse("a,class,label\n1,p,x\n", {.label = "label"});
  parse("a,class,label\n1,p,x\n", {.ignore = {"class"}});
}

TEST(MalformedCsv, RefusesColumnsThatAreNotThere) {
  const auto config_error = [](const DatasetSpec& options) {
    return message_of<ConfigError>([&] { parse("width,species\n1,a\n", options); });
  };
  EXPECT_EQ(config_error({.label = "specis"}),
            "FILE: has no column \"specis\"; did you mean \"species\"? Columns: \"width\", \"species\"");
  EXPECT_THAT(config_error({.label = "species", .ignore = {"id"}}),
              HasSubstr("has no column \"id\". Columns: "));
  EXPECT_EQ(config_error({.targets = {"width"}, .ignore = {"width"}}),
            "FILE: column \"width\" is to be predicted, and is listed under \"ignore\" as well");
  EXPECT_THAT(config_error({.label = "species", .ignore = {"species"}}), HasSubstr("under \"ignore\""));
  EXPECT_EQ(config_error({.targets = {"width", "width"}}),
            "FILE: \"target\" lists column \"width\" twice; once is enough");
  EXPECT_THAT(config_error({.label = "species", .targets = {"width"}}),
              HasSubstr("either a label or targets"));
}

TEST(MalformedCsv, RefusesTextAmongNumbersWhereverItIs) {
  std::string numbers;
  for (int i = 20; i < 60; ++i) numbers += std::to_string(i) + ",a\n";
  EXPECT_THAT(error_of("age,label\n-,a\n" + numbers),
              HasSubstr("FILE: line 2, column \"age\": \"-\" is not a number, as 40 other values are; if"));
  EXPECT_THAT(error_of("age,label\n" + numbers + "-,a\n"),
              HasSubstr("line 42, column \"age\": \"-\" is not a"));
  EXPECT_THAT(error_of("age,label\n#N/A,a\n" + numbers), HasSubstr("the value is missing, as \"#N/A\""));
  EXPECT_THAT(error_of("age,label\n<NA>,a\n" + numbers), HasSubstr("the value is missing, as \"<NA>\""));
}

TEST(MalformedCsv, RefusesNumbersThatFloatsCannotTellApart) {
  EXPECT_THAT(
      error_of("ts,label\n1700000000,a\n1700000059,b\n"),
      HasSubstr("FILE: column \"ts\" holds numbers from 1700000000 to 1700000059, of which float32 tells"));
  EXPECT_THAT(error_of("x;target\n1;1000000,5\n2;1000000,75\n"), HasSubstr("from 1000000.5 to 1000000.75"));
  parse("ts,label\n1700000000,a\n1700099999,b\n", {});
  parse("ts,label\n1700000000,a\n1700000000,b\n", {});
  parse("ts,label\n1700000000,a\n1700000059,b\n", {.categorical = {"ts"}});
}

TEST(MalformedCsv, RefusesPartsThatItDoesNotKnow) {
  EXPECT_EQ(
      error_of("x,split,label\n1,trian,a\n"),
      "FILE: line 2, column \"split\": \"trian\" is no part; allowed: \"train\", \"validation\", \"test\"");
  EXPECT_EQ(error_of("x,split,label\n1,test,a\n"), "FILE: has no rows to train on");
}

TEST(MalformedCsv, RefusesTooManyCategories) {
  std::string content = "name,label\n";
  for (int i = 0; i <= 1000; ++i) content += "n" + std::to_string(i) + ",a\n";
  EXPECT_THAT(error_of(content), HasSubstr("\"name\" (1001 values, as \"n0\")"));
  EXPECT_EQ(error_of(content, {.categorical = {"name"}}),
            "FILE: line 1002, column \"name\": more than 1000 categories; the first value is \"n0\"; a "
            "column that only "
            "tells rows apart can be listed under \"ignore\"");
}

TEST(MalformedCsv, RefusesBombs) {
  std::string row = "0,0\n", rows = "x,label\n";
  for (int i = 0; i < 20; ++i) row += row;
  for (int i = 0; i < 5; ++i) rows += row;
  const std::string packed = test::gzip(rows);
  EXPECT_THAT(error_of(packed), HasSubstr("refused as a decompression bomb"));
}

}  // namespace sweep::malformed_csv_test
