// Rows of a new table become the features that a network was trained on.
#include "core/data/unlabelled/table_features.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "core/base/error.h"
#include "tests/support/message_of.h"

namespace sweep {
namespace {

using test::message_of;
using testing::ElementsAre;
using testing::HasSubstr;

SampleFormat three_columns() {
  SampleFormat format;
  format.shape = {4};
  format.class_names = {"no", "yes"};
  format.columns = {
      {"size", {}, false}, {"colour", {"blue", "red"}, true}, {"grade", {"a", "b", "c"}, false}};
  return format;
}

TableFeatures read(const std::string& text, const SampleFormat& format = three_columns()) {
  std::istringstream in(text);
  InputFile file(in, "new.csv");
  return read_table_features(file, format);
}

std::string refused(const std::string& text) {
  return message_of<DataError>([&] { read(text); });
}

TEST(TableFeatures, AreFoundByNameInAnyOrderAndWithoutTargets) {
  const TableFeatures features = read("id,grade, colour ,size,label\n7,c,red,1.5,no\n\"8\",a,blue,-2,yes\n");
  EXPECT_THAT(features.values, ElementsAre(1.5f, 0, 1, 2, -2, 1, 0, 0));
  EXPECT_THAT(features.lines, ElementsAre(2u, 3u));
  EXPECT_THAT(read("size\tcolour\tgrade\n1\tblue\tb\n").values, ElementsAre(1, 1, 0, 1));
}

TEST(TableFeatures, TakeFillValuesForMissingOnes) {
  EXPECT_THAT(refused("size,colour,grade\n1,NA,a\n"),
              HasSubstr("new.csv: line 2, column \"colour\": the value is missing, as \"NA\""));
  SampleFormat format = three_columns();
  format.fill_values = {3, 0.25f, 0.75f, 1};
  EXPECT_THAT(read("size,colour,grade\n,?,a\n1,red,NA\n", format).values,
              ElementsAre(3, 0.25f, 0.75f, 0, 1, 0, 1, 1));
}

TEST(TableFeatures, RefuseOnlyTheRowOfAnUnknownCategory) {
  const std::string table = "size,colour,grade\n1,red,a\n2,purple,a\n3,blue,b\n";
  const TableFeatures features = read(table);
  EXPECT_THAT(features.values, ElementsAre(1, 0, 1, 0, 3, 1, 0, 1));
  EXPECT_THAT(features.lines, ElementsAre(2u, 4u));
  ASSERT_EQ(features.refused.size(), 1u);
  EXPECT_EQ(features.refused[0].line, 3u);
  EXPECT_EQ(features.refused[0].reason,
            "column \"colour\": \"purple\" was not there in training; allowed: \"blue\", \"red\"");
  SampleFormat format = three_columns();
  format.unknown = UnknownCategory::kZeros;
  EXPECT_THAT(read(table, format).values, ElementsAre(1, 0, 1, 0, 2, 0, 0, 0, 3, 1, 0, 1));
  EXPECT_EQ(read("size,colour,grade\n1,red,z\n", format).refused.size(), 1u) << "a number has no zeros";
}

TEST(TableFeatures, TakeADecimalCommaAsInTraining) {
  SampleFormat format = three_columns();
  format.columns[0].decimal_comma = true;
  EXPECT_THAT(read("size;colour;grade\n1,5;red;a\n2;red;a\n", format).values,
              ElementsAre(1.5f, 0, 1, 0, 2, 0, 1, 0));
  EXPECT_THAT(refused("size;colour;grade\n1,5;red;a\n"), HasSubstr("is not a finite number"));
}

TEST(TableFeatures, NameWhatDoesNotFit) {
  EXPECT_THAT(refused("size,color,grade\n1,red,a\n"),
              HasSubstr("new.csv: has no column \"colour\", which the network was trained on; its columns: "
                        "\"size\", \"color\", \"grade\"; is \"color\" meant?"));
  EXPECT_THAT(refused("size,colour,grade\nbig,red,a\n"),
              HasSubstr("line 2, column \"size\": \"big\" is not a finite number"));
  EXPECT_THAT(refused("size,colour,grade\n1e60,red,a\n"), HasSubstr("is not a finite number"));
  EXPECT_THAT(refused("size,colour,grade\n1,red\n"), HasSubstr("line 2: has 2 fields, the header has 3"));
  EXPECT_THAT(refused("size,colour,grade\n"), HasSubstr("has a header, but no rows"));
  EXPECT_THAT(refused(""), HasSubstr("is empty"));
}

}  // namespace
}  // namespace sweep
