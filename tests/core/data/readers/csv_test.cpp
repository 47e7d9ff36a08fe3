// Tables: columns become features, classes and values.

#include <nlohmann/json.hpp>

#include "core/base/file.h"
#include "core/data/data_from_arrays.h"
#include "core/data/readers/readers.h"
#include "tests/support/data_files.h"
#include "tests/support/memory_file.h"

namespace sweep::csv_test {

Dataset parse(const std::string& content, const DatasetSpec& options = {}, DatasetSpec spec = {}) {
  InputFile file = test::input_file(content);
  spec.missing = options.missing;
  return data_from_arrays(read_csv_file(file, {options}), spec, "FILE");
}

std::vector<float> samples(const Subset& part) {
  return {part.set->floats().begin(), part.set->floats().end()};
}

TEST(Csv, ReadsNumbersAndClasses) {
  const Dataset data = parse("width,height,label\n1.5,2,dog\n-3e2,+4,cat\n5,6,dog\n");
  EXPECT_EQ(data.shape, (Shape{2}));
  EXPECT_THAT(data.feature_names, ElementsAre("width", "height"));
  EXPECT_THAT(data.class_names, ElementsAre("cat", "dog"));
  EXPECT_THAT(data.train.labels(), ElementsAre(1, 0, 1));
  EXPECT_THAT(samples(data.train), ElementsAre(1.5f, 2, -300, 4, 5, 6));
  EXPECT_EQ(data.test.count, 0u);
}

TEST(Csv, SortsWholeNumbersAsLabelsByValue) {
  EXPECT_THAT(parse("x,label\n1,10\n1,9\n2,-1\n").class_names, ElementsAre("-1", "9", "10"));
  EXPECT_THAT(parse("x,label\n1,10\n1,9\n2,a\n").class_names, ElementsAre("10", "9", "a"));
}

TEST(Csv, TakesNoneForAClassIfTheLabelIsCategorical) {
  const std::string table = "x,label\n1,None\n2,a\n3,null\n";
  EXPECT_THAT(message_of<DataError>([&] { parse(table); }),
              HasSubstr("the value is missing, as \"None\"; if that is the name of a class, list the column "
                        "under \"categorical\""));
  EXPECT_THAT(parse(table, {.categorical = {"label"}}).class_names, ElementsAre("None", "a", "null"));
  EXPECT_THROW(parse("x,label\n1,\n", {.categorical = {"label"}}), DataError);
}

TEST(Csv, ReadsValuesToPredict) {
  const Dataset data = parse("x,target\n1,0.5\n2,-7\n");
  EXPECT_THAT(data.target_names, ElementsAre("target"));
  EXPECT_THAT(data.train.numbers(), ElementsAre(0.5f, -7));
  const Dataset two = parse("b,x,a\n1,2,3\n4,5,6\n", {.targets = {"a", "b"}});
  EXPECT_THAT(two.train.numbers(), ElementsAre(3, 1, 6, 4));
  EXPECT_THAT(samples(two.train), ElementsAre(2, 5));
}

TEST(Csv, ReadsQuotesAsInRfc4180) {
  const Dataset data = parse("\"a \"\"big\"\" one\",label\r\n\"1\",\"two\r\nlines\"\r\n2,\"x,y\"\r\n");
  EXPECT_THAT(data.feature_names, ElementsAre("a \"big\" one"));
  EXPECT_THAT(data.class_names, ElementsAre("two\r\nlines", "x,y"));
}

TEST(Csv, PassesOverByteOrderMarkAndEmptyLines) {
  EXPECT_THAT(samples(parse("\xef\xbb\xbfx,label\n\n1,a\r\n\r\n2,b").train), ElementsAre(1, 2));
  EXPECT_THAT(samples(parse("x,label\r1,a\r2,b\r").train), ElementsAre(1, 2));
  EXPECT_THAT(samples(parse("\n\r\nx;label\n1;a\n2;b\n").train), ElementsAre(1, 2));
}

TEST(Csv, FindsTheSeparator) {
  EXPECT_THAT(samples(parse("x\ty\tlabel\n1\t2\ta, b\n").train), ElementsAre(1, 2));
  EXPECT_THAT(samples(parse("x;y;label\n1;2;a\n").train), ElementsAre(1, 2));
}

TEST(Csv, MakesAFeatureOfEachCategory) {
  const Dataset data = parse("colour,x,label\nred,1,a\ngreen,2,b\nred,3,a\n");
  EXPECT_THAT(data.feature_names, ElementsAre("colour=green", "colour=red", "x"));
  EXPECT_THAT(samples(data.train), ElementsAre(0, 1, 1, 1, 0, 2, 0, 1, 3));
}

TEST(Csv, TakesAFewNumbersAmongTextForCategories) {
  std::string table = "x,label\n";
  for (int row = 0; row < 18; ++row) table += row % 2 == 0 ? "red,a\n" : "blue,b\n";
  table += "7,a\n";
  EXPECT_THAT(parse(table).feature_names, ElementsAre("x=7", "x=blue", "x=red"));
}

TEST(Csv, TakesTwoSignsForText) {
  EXPECT_THAT(parse("x,label\n+-4,a\n+-5,b\n").feature_names, ElementsAre("x=+-4", "x=+-5"));
}

TEST(Csv, MakesOneFeatureOfCategoriesInOrder) {
  const Dataset data = parse("colour,x,label\nred,1,a\ngreen,2,b\n", {.categories = Categories::kOrdinal});
  EXPECT_THAT(data.feature_names, ElementsAre("colour", "x"));
  EXPECT_THAT(samples(data.train), ElementsAre(1, 1, 0, 2));
}

TEST(Csv, TakesNumbersAsCategoriesIfTold) {
  const Dataset data = parse("zip,label\n200,a\n30,b\n", {.categorical = {"zip"}});
  EXPECT_THAT(data.feature_names, ElementsAre("zip=30", "zip=200"));
}

TEST(Csv, LeavesOutColumns) {
  EXPECT_THAT(parse("id,x,label\n1,2,a\n", {.ignore = {"id"}}).feature_names, ElementsAre("x"));
  EXPECT_THAT(parse("class,x,label\nu,1,a\nv,2,b\n", {.ignore = {"label"}}).class_names,
              ElementsAre("u", "v"));
  const Dataset pandas = parse(",x,label\n0,2,a\n1,3,a\n");
  EXPECT_THAT(pandas.feature_names, ElementsAre("x"));
  EXPECT_THAT(pandas.notes,
              ElementsAre("FILE: column 1 has no name and is ignored, as row numbers that pandas writes"));
}

TEST(Csv, NotesConstantColumns) {
  EXPECT_THAT(parse("x,y,label\n1,2,a\n1,3,a\n").notes,
              ElementsAre("FILE: column \"x\" has the same value in all rows"));
}

TEST(Csv, KeepsMissingValuesForTheTrainingMean) {
  const Dataset data = parse("x,c,label\n1,u,a\nNA,,b\n 4 ,v,a\n100,u,b\n", {.missing = MissingValues::kMean},
                             {.validation = std::size_t{1}});
  EXPECT_THAT(samples(data.train), ElementsAre(1, 1, 0, 2.5f, 0.5f, 0.5f, 4, 0, 1, 100, 1, 0));
}

TEST(Csv, TakesADecimalCommaBetweenSemicolons) {
  const Dataset data = parse("x;n;price;label\n7,4;1;2.5;a\n-0,25;2;3;b\n8;3;4;a\n");
  EXPECT_THAT(data.feature_names, ElementsAre("x", "n", "price"));
  EXPECT_THAT(samples(data.train), ElementsAre(7.4f, 1, 2.5f, -0.25f, 2, 3, 8, 3, 4));
  EXPECT_THAT(
      data.notes,
      ElementsAre("FILE: numbers with a decimal comma are in \"x\"; \"decimal\": \".\" makes them text"));
  EXPECT_TRUE(data.columns[0].decimal_comma);
  EXPECT_FALSE(data.columns[1].decimal_comma);
  EXPECT_THAT(
      message_of<DataError>([] { parse("x;label\n7,4;a\n7.4;b\n"); }),
      HasSubstr(
          "line 3, column \"x\": \"7.4\": some numbers of the column have a decimal point, others a comma"));
}

TEST(Csv, RefusesPointsThatMaySeparateThousandsNextToDecimalCommas) {
  EXPECT_THAT(message_of<DataError>([] { parse("n;x;label\n700;0,5;a\n1.690;99,5;b\n"); }),
              HasSubstr("FILE: column \"n\" has numbers such as \"1.690\", and others have decimal commas"));
  parse("n;x;label\n0.690;0,5;a\n1.690;99,5;b\n");
  parse("n;x;label\n700;0.5;a\n1.690;99.5;b\n");
}

TEST(Csv, TakesACommaBetweenCommasForTextUnlessItIsSaid) {
  const std::string table = "x,label\n\"1,234\",a\n\"5,6\",b\n";
  EXPECT_THAT(parse(table).feature_names, ElementsAre("x=1,234", "x=5,6"));
  EXPECT_THAT(samples(parse(table, {.decimal = DecimalMark::kComma}).train), ElementsAre(1.234f, 5.6f));
  EXPECT_THAT(
      message_of<DataError>([] { parse("x;label\n700;a\n1.690;b\n", {.decimal = DecimalMark::kComma}); }),
      HasSubstr("line 3, column \"x\": \"1.690\": has a point, but \"decimal\" says that"));
  EXPECT_TRUE(parse("x;label\n700;a\n1;b\n", {.decimal = DecimalMark::kComma}).columns[0].decimal_comma);
  EXPECT_THAT(parse("x;label\n1,5;a\n2;b\n", {.categorical = {"x"}}).feature_names,
              ElementsAre("x=1,5", "x=2"));
  EXPECT_THAT(parse("x;label\n1,5;a\n2,5;b\n", {.decimal = DecimalMark::kPoint}).feature_names,
              ElementsAre("x=1,5", "x=2,5"));
}

TEST(Csv, RefusesIdsDatesAndFreeTextByName) {
  std::string table = "x,id,day,colour,label\n";
  for (int i = 0; i < 100; ++i) {
    table += std::to_string(i) + ",id-" + std::to_string(i) + ",2024-03-" + std::to_string(i % 31 + 1) +
             "T10:" + std::to_string(10 + i % 2) + "," + (i % 2 == 0 ? "red" : "blue") + "," +
             (i % 3 == 0 ? "a" : "b") + "\n";
  }
  EXPECT_EQ(
      message_of<DataError>([&] { parse(table); }),
      "FILE: these columns tell rows apart instead of describing them: \"id\" (100 values, as \"id-0\"), "
      "\"day\" (dates, 62 values, as \"2024-03-10T10:10\"). List them under \"ignore\", or under "
      "\"categorical\" if their values are categories");
  EXPECT_THAT(parse(table, {.ignore = {"id", "day"}}).feature_names,
              ElementsAre("x", "colour=blue", "colour=red"));
  EXPECT_EQ(parse(table, {.categorical = {"id", "day"}}).feature_names.size(), 1u + 100 + 62 + 2);
}

TEST(Csv, ReadsLatin1AndUtf16) {
  const Dataset latin = parse(
      "gr\xf6\xdf"
      "e,label\n1,\xe4\n",
      {.encoding = TextEncoding::kLatin1});
  EXPECT_THAT(latin.feature_names, ElementsAre("größe"));
  EXPECT_THAT(latin.class_names, ElementsAre("ä"));
  const std::u16string text = u"größe\tlabel\n1\t😀\n2\tb\n";
  std::string little = "\xff\xfe", big = "\xfe\xff";
  for (const char16_t unit : text) {
    const char low = static_cast<char>(unit & 0xff), high = static_cast<char>(unit >> 8);
    little += {low, high};
    big += {high, low};
  }
  for (const std::string& file : {little, big}) {
    EXPECT_THAT(parse(file).feature_names, ElementsAre("größe"));
    EXPECT_THAT(parse(file).class_names, ElementsAre("b", "😀"));
    EXPECT_THAT(message_of<DataError>([&] { parse(file.substr(0, file.size() - 1)); }),
                HasSubstr("is cut short"));
  }
  const TemporaryDirectory directory;
  EXPECT_TRUE(is_tsv(directory.write("t.tsv", little)));
  EXPECT_THAT(message_of<DataError>([] { parse(std::string("\xff\xfe,\0\0\xd8,\0", 8)); }),
              HasSubstr("is not UTF-16"));
}

TEST(Csv, DividesRowsByAColumn) {
  const Dataset data = parse("x,split,label\n1,train,a\n2,test,b\n3,train,b\n4,val,a\n");
  EXPECT_THAT(samples(data.train), ElementsAre(1, 3));
  EXPECT_THAT(samples(data.test), ElementsAre(2));
  EXPECT_THAT(data.validation.labels(), ElementsAre(0));
}

TEST(Csv, ReadsAFolderWithFilesForEachPart) {
  const TemporaryDirectory directory;
  directory.write("train-1.csv", "x,label\n1,a\n");
  directory.write("train-2.csv", "x,label\n2,b\n");
  directory.write("test.csv.gz", test::gzip("x,label\n3,b\n"));
  directory.write("notes.md", "other files do not matter");
  const fs::path path = directory.path();
  EXPECT_TRUE(is_csv(path));
  EXPECT_FALSE(is_tsv(path));
  const Dataset data = data_from_arrays(read_csv(std::span(&path, 1), {}), {}, "FOLDER");
  EXPECT_THAT(samples(data.train), ElementsAre(1, 2));
  EXPECT_THAT(data.test.labels(), ElementsAre(1));
  ASSERT_EQ(data.files.size(), 3u);
  EXPECT_EQ(data.files[1].path, directory / "train-1.csv");
  EXPECT_EQ(data.files[1].sha256.size(), 64u);
}

TEST(Csv, IsRecognisedByItsFirstLine) {
  const TemporaryDirectory directory;
  EXPECT_TRUE(is_csv(directory.write("a", "x,label\n1,a\n")));
  EXPECT_TRUE(is_tsv(directory.write("b", "x\tlabel\n1\ta, b\n")));
  EXPECT_TRUE(is_csv(directory.write("e", "\nx;label\n1;a\n")));
  EXPECT_FALSE(is_csv(directory / "b"));
  EXPECT_FALSE(is_csv(directory.write("c", "just text")));
  EXPECT_FALSE(is_csv(directory.write("d", std::string("a,b\0c", 5))));
  EXPECT_FALSE(is_csv(directory / "nowhere"));
}

TEST(Csv, ReadsRowsThatCrossTheBuffer) {
  std::string content = "x,label\n";
  for (int i = 0; i < 60'000; ++i)
    content += std::to_string(i) + ",\"class\n" + std::to_string(i % 3) + "\"\n";
  const Dataset data = parse(content);
  ASSERT_EQ(data.train.count, 60'000u);
  EXPECT_EQ(data.class_names.size(), 3u);
  for (int i = 0; i < 60'000; ++i) {
    ASSERT_EQ(samples(data.train)[static_cast<std::size_t>(i)], static_cast<float>(i));
    if (i > 100 && i < 59'000) i += 997;
  }
}

// Tables with mistakes: the message names file, line and column.

void check(const std::string& content, const DatasetSpec& options = {}) {
  InputFile file = test::input_file(content);
  read_csv_file(file, {options});
}

std::string error_of(const std::string& content, const DatasetSpec& options = {}) {
  return message_of<DataError>([&] { check(content, options); });
}

// A row of bad_tables.json: a table, keys of the data set, and the whole "message" or a part that it "has",
// unless the table is good. Keys that do not fit it are a ConfigError.
TEST(MalformedCsv, IsRefusedWithTheLineAndTheColumn) {
  const auto rows = nlohmann::json::parse(read_file(SWEEP_TEST_DATA "/bad_tables.json"));
  ASSERT_GE(rows.size(), 50u);
  for (const auto& row : rows) {
    const auto names = [&](const char* key) { return row.value(key, std::vector<std::string>()); };
    DatasetSpec options{.label = row.value("label", ""), .targets = names("targets")};
    options.ignore = names("ignore");
    options.categorical = names("categorical");
    if (row.value("missing", "") == "mean") options.missing = MissingValues::kMean;
    const bool is_about_names = row.contains("label") || row.contains("targets");
    std::string message;
    try {
      check(row.at("text"), options);
    } catch (const Error& error) {
      message = error.what();
      EXPECT_EQ(dynamic_cast<const ConfigError*>(&error) != nullptr, is_about_names) << row;
    }
    EXPECT_EQ(message.empty(), !row.contains("message") && !row.contains("has")) << row;
    EXPECT_EQ(message, row.value("message", message)) << row;
    EXPECT_THAT(message, HasSubstr(row.value("has", ""))) << row;
  }
}

TEST(MalformedCsv, RefusesFieldsWithoutEnd) {
  EXPECT_THAT(error_of("x,label\n1,\"" + std::string(2 << 20, 'a') + "\"\n"),
              HasSubstr("field 2 has more than 1 MiB; a closing quote may be missing"));
}

TEST(MalformedCsv, RefusesWhatIsNotUtf8) {
  EXPECT_THAT(
      error_of("x,label\n1,\xe9\n"),
      HasSubstr("line 2, column \"label\": is not UTF-8; if it is Latin-1, set \"encoding\": \"latin-1\""));
  EXPECT_THAT(error_of("\xe9,label\n1,a\n"),
              HasSubstr("the name of column 1 is not UTF-8; if it is Latin-1, set \"encoding\""));
}

TEST(MalformedCsv, RefusesTooManyCategories) {
  std::string content = "name,label\n";
  for (int i = 0; i <= 1000; ++i) content += "n" + std::to_string(i) + ",a\n";
  EXPECT_THAT(error_of(content), HasSubstr("\"name\" (1001 values, as \"n0\")"));
  EXPECT_EQ(error_of(content, {.categorical = {"name"}}),
            "FILE: line 1002, column \"name\": more than 1000 categories; the first value is \"n0\"; a "
            "column that only tells rows apart can be listed under \"ignore\"");
}

// Rows of a new table become the features that a network was trained on.

using testing::IsNan;

ReadOptions three_columns() {
  ReadOptions options;
  options.unlabelled = true;
  options.columns = {
      {"size", {}, false}, {"colour", {"blue", "red"}, true}, {"grade", {"a", "b", "c"}, false}};
  return options;
}

DataArrays read(const std::string& text, const ReadOptions& options = three_columns()) {
  InputFile file = test::input_file(text, "new.csv");
  return read_csv_file(file, options);
}

std::vector<float> values(const DataArrays& data) {
  return std::get<std::vector<float>>(data.arrays.at(0).values);
}

std::string refused(const std::string& text) {
  return message_of<DataError>([&] { read(text); });
}

// Why the second row is skipped, but no other one.
std::string skipped(const std::string& row, const ReadOptions& options = three_columns()) {
  const DataArrays data = read("size;colour;grade\n1;red;a\n" + row + "\n2;blue;b\n", options);
  EXPECT_THAT(values(data), ElementsAre(1, 0, 1, 0, 2, 1, 0, 1));
  EXPECT_THAT(data.lines, ElementsAre(2u, 4u));
  if (data.skipped.size() != 1) return "";
  EXPECT_EQ(data.skipped[0].path, "new.csv:3");
  return data.skipped[0].reason;
}

TEST(KnownColumns, AreFoundByNameInAnyOrderAndWithoutTargets) {
  const DataArrays features = read("id,grade, colour ,size,label\n7,c,red,1.5,no\n\"8\",a,blue,-2,yes\n");
  EXPECT_THAT(values(features), ElementsAre(1.5f, 0, 1, 2, -2, 1, 0, 0));
  EXPECT_THAT(features.lines, ElementsAre(2u, 3u));
  EXPECT_THAT(values(read("size\tcolour\tgrade\n1\tblue\tb\n")), ElementsAre(1, 1, 0, 1));
}

TEST(KnownColumns, AreNanWhereTheyAreMissing) {
  EXPECT_THAT(skipped("1;NA;a"), HasSubstr("column \"colour\": the value is missing, as \"NA\""));
  ReadOptions options = three_columns();
  options.missing = MissingValues::kMean;
  EXPECT_THAT(values(read("size,colour,grade\n,?,a\n1,red,NA\n", options)),
              ElementsAre(IsNan(), IsNan(), IsNan(), 0, 1, 0, 1, IsNan()));
}

TEST(KnownColumns, RefuseOnlyTheRowOfAnUnknownCategory) {
  const std::string table = "size,colour,grade\n1,red,a\n2,purple,a\n3,blue,b\n";
  EXPECT_EQ(skipped("2;purple;a"),
            "column \"colour\": \"purple\" was not there in training; allowed: \"blue\", \"red\"");
  ReadOptions options = three_columns();
  options.unknown = UnknownCategory::kZeros;
  EXPECT_THAT(values(read(table, options)), ElementsAre(1, 0, 1, 0, 2, 0, 0, 0, 3, 1, 0, 1));
  EXPECT_EQ(read("size,colour,grade\n1,red,z\n", options).skipped.size(), 1u) << "a number has no zeros";
}

TEST(KnownColumns, TakeADecimalCommaAsInTraining) {
  ReadOptions options = three_columns();
  options.columns[0].decimal_comma = true;
  EXPECT_THAT(values(read("size;colour;grade\n1,5;red;a\n2;red;a\n", options)),
              ElementsAre(1.5f, 0, 1, 0, 2, 0, 1, 0));
  EXPECT_EQ(skipped("1.5;red;a", options),
            "column \"size\": \"1.5\" has a point, but those it was trained on have a decimal comma");
  EXPECT_THAT(skipped("1,5;red;a"), HasSubstr("is not a finite number"));
}

TEST(KnownColumns, NameWhatDoesNotFit) {
  EXPECT_EQ(
      refused("size,size,colour,grade\n1,2,red,a\n"),
      "new.csv: two columns are called \"size\", which the network was trained on; take one of them out");
  EXPECT_THAT(refused("size,color,grade\n1,red,a\n"),
              HasSubstr("new.csv: has no column \"colour\", which the network was trained on; its columns: "
                        "\"size\", \"color\", \"grade\"; is \"color\" meant?"));
  EXPECT_THAT(skipped("big;red;a"), HasSubstr("column \"size\": \"big\" is not a finite number"));
  EXPECT_THAT(skipped("1e60;red;a"), HasSubstr("is not a finite number"));
  EXPECT_THAT(refused("size,colour,grade\n1,red\n"), HasSubstr("line 2: has 2 fields, the header has 3"));
  EXPECT_THAT(refused("size,colour,grade\n"), HasSubstr("has a header, but no rows"));
  EXPECT_THAT(refused(""), HasSubstr("is empty"));
}

}  // namespace sweep::csv_test
