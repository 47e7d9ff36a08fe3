// Rows of a new table become the features that a network was trained on.
#include "core/data/readers/readers.h"

#include "tests/support/memory_file.h"
#include "tests/support/test.h"

namespace sweep::known_columns_test {

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

}  // namespace sweep::known_columns_test
