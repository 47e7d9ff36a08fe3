// Data sets of samples in memory.
#include "core/data/memory_dataset.h"

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
MemoryData ten_samples() {
  MemoryData data;
  data.shape = {2};
  std::vector<float> samples;
  std::vector<std::int32_t> classes;
  for (int i = 0; i < 10; ++i) {
    samples.insert(samples.end(), {static_cast<float>(i), 0.5f});
    classes.push_back(i % 3);
  }
  data.train = {std::move(samples), std::move(classes)};
  return data;
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
  EXPECT_EQ(batch->floats()[batch->rows[0] * 2], 7.0f);
  EXPECT_EQ(batch->labels()[batch->rows[0]], 1);
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
  MemoryData data;
  data.shape = {1, 2, 2};
  data.train = {std::vector<std::uint8_t>(8, 200), std::vector<float>{1, 2, 3, 4}};
  data.test = MemorySamples{std::vector<std::uint8_t>(4, 100), std::vector<float>{5, 6}};
  const Dataset set = make_dataset(data);
  EXPECT_THAT(set.target_names, ElementsAre("target 0", "target 1"));
  EXPECT_TRUE(set.class_names.empty());
  EXPECT_THAT(set.train.set->numbers(), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(set.test.set->pixels(), ElementsAre(100, 100, 100, 100));
  data.target_names = {"width", "height"};
  EXPECT_THAT(make_dataset(data).target_names, ElementsAre("width", "height"));
}

TEST(MemoryDataset, MissingValuesBecomeMeansWhereThatIsAskedFor) {
  MemoryData data = ten_samples();
  std::get<std::vector<float>>(data.train.samples)[0] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THAT(message_of<DataError>([&] { make_dataset(data); }), HasSubstr("sample 0 (from 0) holds NaN"));
  DatasetSpec options;
  options.missing = MissingValues::kMean;
  EXPECT_EQ(make_dataset(data, options).train.set->floats()[0], 5.0f) << "the mean of 1 to 9";
}

TEST(MemoryDataset, SaysWhatDoesNotFit) {
  const auto message = [](const auto& change) {
    MemoryData data = ten_samples();
    change(data);
    DatasetSpec options;
    options.name = "mine";
    return message_of<DataError>([&] { make_dataset(std::move(data), options); });
  };
  EXPECT_THAT(message([](MemoryData& d) { d.shape = {3}; }),
              HasSubstr("mine: train: 20 values are no whole samples of shape [3]"));
  EXPECT_THAT(message([](MemoryData& d) { d.shape = {4}; }),
              HasSubstr("mine: train: 10 targets for 5 samples, want 5"));
  EXPECT_THAT(message([](MemoryData& d) { d.shape = {2, 1}; }), HasSubstr("the shape of a sample is [2, 1]"));
  EXPECT_THAT(message([](MemoryData& d) { d.shape = {0}; }), HasSubstr("the shape of a sample is [0]"));
  EXPECT_THAT(message([](MemoryData& d) {
                d.class_names = {"a", "b"};
              }),
              HasSubstr("class 2 is out of range: there are 2 classes"));
  EXPECT_THAT(message([](MemoryData& d) { std::get<0>(d.train.targets)[4] = -1; }),
              HasSubstr("class -1 is out of range"));
  EXPECT_THAT(message([](MemoryData& d) { d.target_names = {"price"}; }),
              HasSubstr("its targets are classes"));
  EXPECT_THAT(message([](MemoryData& d) { d.train.targets = std::vector<float>{}; }),
              HasSubstr("0 targets for 10 training samples"));
  EXPECT_THAT(message([](MemoryData& d) {
                d.test = MemorySamples{std::vector<std::uint8_t>(2), std::vector<std::int32_t>(1)};
              }),
              HasSubstr("one part holds bytes, another floats"));
  EXPECT_THAT(message([](MemoryData& d) {
                d.validation = MemorySamples{std::vector<float>(2), std::vector<float>(1)};
              }),
              HasSubstr("mine: validation: its targets are numbers"));
}

}  // namespace
}  // namespace sweep
