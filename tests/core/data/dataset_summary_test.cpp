#include "core/data/dataset_summary.h"

#include "tests/support/test.h"

namespace sweep::dataset_summary_test {

TEST(DatasetSummary, CountsTheClassesOfEachPartByItself) {
  auto set = std::make_shared<TensorDataset>();
  set->shape = {1};
  set->samples = MaybeOwnedArray<std::uint8_t>(std::vector<std::uint8_t>(6));
  set->targets = MaybeOwnedArray<std::int32_t>(std::vector<std::int32_t>{2, 0, 2, 2, 0, 2});
  Dataset dataset;
  dataset.class_names = {"a", "b", "c"};
  dataset.train = {set, 0, 3};
  dataset.test = {set, 4, 2};
  const auto parts = summarize_parts(dataset);
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(parts[0].name, "train");
  EXPECT_THAT(parts[0].class_counts, ElementsAre(1, 0, 2));
  EXPECT_EQ(parts[1].name, "test");
  EXPECT_THAT(parts[1].class_counts, ElementsAre(1, 0, 1));
  EXPECT_EQ(memory_bytes(dataset), 6 + 6 * 4) << "the parts share one set";
}

TEST(DatasetSummary, MeasuresEachNumberOfEachPart) {
  auto set = std::make_shared<TensorDataset>();
  set->shape = {1};
  set->samples = MaybeOwnedArray<float>(std::vector<float>(3));
  set->targets = MaybeOwnedArray<float>(std::vector<float>{100, 100, 1, 10, 3, 10});
  Dataset dataset;
  dataset.target_names = {"p", "q"};
  dataset.train = {set, 1, 2};
  const auto parts = summarize_parts(dataset);
  ASSERT_EQ(parts.size(), 1u);
  EXPECT_THAT(parts[0].targets.mean, ElementsAre(2.0, 10.0));
  EXPECT_THAT(parts[0].targets.deviation, ElementsAre(1.0, 0.0));
  EXPECT_THAT(parts[0].class_counts, IsEmpty());
}

}  // namespace sweep::dataset_summary_test
