#include "runmanager/tensorboard/text_tables.h"

#include "tests/support/test.h"

namespace sweep::data_table_test {

using Json = nlohmann::ordered_json;

TEST(DataTable, HasARowPerClassWithItsShareOfEachPart) {
  const Json balance = Json::parse(R"([
      {"part": "train", "samples": 8, "classes": {"cat": 6, "a_dog": 2}},
      {"part": "test", "samples": 4, "classes": {"cat": 4, "a_dog": 0}}])");
  EXPECT_EQ(data_table(balance),
            "| class | train |  | test |  |\n| --- | --- | --- | --- | --- |\n"
            "| cat | 6 | 75 % | 4 | 100 % |\n"
            "| a\\_dog | 2 | 25 % | 0 | 0 % |\n"
            "| all | 8 |  | 4 |  |\n");
}

TEST(DataTable, HasARowPerTarget) {
  const Json balance = Json::parse(R"([
      {"part": "train", "samples": 8, "targets": {"price": {"mean": 1.5, "deviation": 0.25}}}])");
  EXPECT_EQ(data_table(balance),
            "| target | train: mean | deviation |\n| --- | --- | --- |\n| price | 1.5 | 0.25 |\n");
}

TEST(DataTable, IsNothingWithoutData) {
  EXPECT_EQ(data_table(nullptr), "");
  EXPECT_EQ(data_table(Json::array()), "");
}

}  // namespace sweep::data_table_test
