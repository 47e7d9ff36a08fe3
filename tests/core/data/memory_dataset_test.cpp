// Data sets of samples in memory.
#include "core/data/dataset.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "core/base/error.h"
#include "core/data/data_loader.h"
#include "tests/support/message_of.h"

namespace sweep {
namespace {

using test::message_of;
using testing::ElementsAre;
using testing::HasSubstr;

// Ten samples of two floats, of classes 0, 1, 2, 0, …
DataArrays ten_samples() {
  std::vector<float> samples;
  std::vector<std::int64_t> classes;
  for (int i = 0; i < 10; ++i) {
    samples.insert(samples.end(), {static_cast<float>(i), 0.5f});
    classes.push_back(i % 3);
  }
  return {{{"x", {10, 2}, std::move(samples)}, {"y", {10}, std::move(classes)}}};
}

TEST(MemoryDataset, GivesItsSamplesToALoader) {
  DatasetSpec options;
  options.validation = std::size_t{3};
  const Dataset set = make_dataset(ten_samples(), options);
  EXPECT_THAT(set.class_names, ElementsAre("0", "1", "2"));
  EXPECT_EQ(set.name, "memory");
  ASSERT_EQ(set.train.count, 7u);
  EXPECT_EQ(set.validation.count, 3u);
  EXPECT_EQ(set.transform, InputTransform{}) << "nothing is normalised that nobody asked for";
  DataLoader loader(set.validation, {.batch_size = 3});
  loader.begin_epoch(0);
  const Batch* batch = loader.next();
  ASSERT_NE(batch, nullptr);
  EXPECT_EQ(batch->floats()[batch->indices[0] * 2], 7.0f);
  EXPECT_EQ(batch->labels()[batch->indices[0]], 1);
}

TEST(MemoryDataset, TakesTheOptionsOfDataInFiles) {
  DatasetSpec options;
  options.test = 0.2;
  options.split = SplitMethod::kStratified;
  options.normalization = Normalization::kTrain;
  options.limit = 6;
  const Dataset set = make_dataset(ten_samples(), options);
  EXPECT_EQ(set.train.count, 6u);
  EXPECT_EQ(set.test.count, 2u);
  ASSERT_EQ(set.transform.mean.size(), 2u);
  EXPECT_EQ(set.transform.mean[1], 0.5f);
  EXPECT_EQ(set.transform.std[1], 1.0f) << "a constant feature";
}

TEST(MemoryDataset, HasPartsAndNumbersAsTargets) {
  DataArrays data{{{"x_train", {2, 1, 2, 2}, std::vector<std::uint8_t>(8, 200)},
                   {"y_train", {2, 2}, std::vector<float>{1, 2, 3, 4}},
                   {"x_test", {1, 1, 2, 2}, std::vector<std::uint8_t>(4, 100)},
                   {"y_test", {1, 2}, std::vector<float>{5, 6}}}};
  const Dataset set = make_dataset(data);
  EXPECT_THAT(set.target_names, ElementsAre("y 0", "y 1"));
  EXPECT_TRUE(set.class_names.empty());
  EXPECT_THAT(set.train.set->numbers(), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(set.test.set->pixels(), ElementsAre(100, 100, 100, 100));
  data.target_names = {"width", "height"};
  EXPECT_THAT(make_dataset(data).target_names, ElementsAre("width", "height"));
}

TEST(MemoryDataset, HasChannelsInFrontWhateverTheShape) {
  const DataArrays data{
      {{"x", {1, 4, 5, 3}, std::vector<std::uint8_t>(60)}, {"y", {1}, std::vector<std::int64_t>{0}}}};
  EXPECT_EQ(make_dataset(data).shape, (Shape{4, 5, 3}));
}

TEST(MemoryDataset, MissingValuesBecomeMeansWhereThatIsAskedFor) {
  DataArrays data = ten_samples();
  std::get<std::vector<float>>(data.arrays[0].values)[0] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THAT(message_of<DataError>([&] { make_dataset(data); }),
              HasSubstr("memory: array \"x\" holds NaN in sample 0 (from 0)"));
  DatasetSpec options;
  options.missing = MissingValues::kMean;
  EXPECT_EQ(make_dataset(data, options).train.set->floats()[0], 5.0f) << "the mean of 1 to 9";
}

TEST(MemoryDataset, SaysWhatDoesNotFit) {
  DataArrays data = ten_samples();
  data.class_names = {"a", "b"};
  EXPECT_THAT(message_of<DataError>([&] { make_dataset(data); }),
              HasSubstr("label 2 of sample 2 (from 0) is out of range: 0 to 1"));
  data = ten_samples();
  data.target_names = {"price", "size"};
  data.arrays[1] = {"y", {10}, std::vector<float>(10)};
  EXPECT_THAT(message_of<DataError>([&] { make_dataset(data); }),
              HasSubstr("has 1 numbers per sample, but 2 names"));
}

}  // namespace
}  // namespace sweep
