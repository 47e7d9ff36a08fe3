// Which samples become training, validation and test samples.
#include "core/data/dataset_parts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "core/base/error.h"
#include "tests/support/message_of.h"

namespace sweep {
namespace {

using test::message_of;
using testing::HasSubstr;

// 60 samples of class 0, 30 of class 1, 10 of class 2, class by class; the only byte of a sample is its
// number.
RawData sorted_samples() {
  RawData raw;
  raw.shape = {1, 1, 1};
  raw.class_names = {"a", "b", "c"};
  std::vector<std::uint8_t> bytes;
  for (int i = 0; i < 100; ++i) {
    bytes.push_back(static_cast<std::uint8_t>(i));
    raw.train.classes.push_back(i < 60 ? 0 : i < 90 ? 1 : 2);
  }
  raw.train.count = 100;
  raw.train.samples = std::move(bytes);
  return raw;
}

std::vector<int> numbers_of(const Samples& samples) {
  std::vector<int> numbers;
  for (std::size_t i = 0; i < samples.count; ++i) {
    const int number = samples.set->sample(samples.first + i)[0];
    EXPECT_EQ(samples.set->labels[samples.first + i], number < 60 ? 0 : number < 90 ? 1 : 2);
    numbers.push_back(number);
  }
  return numbers;
}

std::vector<std::size_t> class_counts(const Samples& samples) {
  std::vector<std::size_t> counts(3);
  for (const int number : numbers_of(samples)) ++counts[number < 60 ? 0 : number < 90 ? 1 : 2];
  return counts;
}

DatasetSpec with_sizes(std::size_t validation, double test) {
  DatasetSpec spec;
  spec.name = "mine";
  spec.validation = validation;
  spec.test = test;
  return spec;
}

TEST(SplitSamples, TakesTheEndInTheOrderOfTheFiles) {
  const DatasetParts parts = split_samples(sorted_samples(), with_sizes(20, 0.1), SplitMethod::kEnd);
  EXPECT_EQ(numbers_of(parts.train).back(), 69);
  EXPECT_EQ(numbers_of(parts.validation).front(), 70);
  EXPECT_EQ(numbers_of(parts.test).front(), 90);
  EXPECT_EQ(parts.test.set, parts.train.set) << "without a copy";
}

TEST(SplitSamples, GivesEachSampleToOnePart) {
  for (const SplitMethod method : {SplitMethod::kRandom, SplitMethod::kStratified}) {
    const DatasetParts parts = split_samples(sorted_samples(), with_sizes(20, 0.1), method);
    std::set<int> all;
    for (const Samples* part : {&parts.train, &parts.validation, &parts.test}) {
      for (const int number : numbers_of(*part)) EXPECT_TRUE(all.insert(number).second);
    }
    EXPECT_EQ(all.size(), 100u);
    EXPECT_EQ(parts.validation.count, 20u);
    EXPECT_EQ(parts.test.count, 10u);
    EXPECT_FALSE(std::ranges::is_sorted(numbers_of(parts.train)));
  }
}

TEST(SplitSamples, StratifiedTakesTheSamePartOfEveryClass) {
  const DatasetParts parts = split_samples(sorted_samples(), with_sizes(20, 0.1), SplitMethod::kStratified);
  EXPECT_THAT(class_counts(parts.validation), testing::ElementsAre(12, 6, 2));
  EXPECT_THAT(class_counts(parts.test), testing::ElementsAre(6, 3, 1));
}

TEST(SplitSamples, DependsOnTheSplitSeedOnly) {
  DatasetSpec spec = with_sizes(20, 0.1);
  const auto validation = [&] {
    return numbers_of(split_samples(sorted_samples(), spec, SplitMethod::kRandom).validation);
  };
  const std::vector<int> first = validation();
  EXPECT_EQ(validation(), first);
  spec.split_seed = 1;
  EXPECT_NE(validation(), first);
}

TEST(SplitSamples, RefusesToSplitOffWhatTheSourceHas) {
  RawData raw = sorted_samples();
  raw.test = raw.train;
  EXPECT_EQ(
      message_of<ConfigError>([&] { split_samples(raw, with_sizes(0, 0.1), SplitMethod::kEnd); }),
      "test takes samples from the training set, but \"mine\" has a test set of its own: leave \"test\" out");
  EXPECT_THAT(
      message_of<ConfigError>(
          [] { split_samples(sorted_samples(), with_sizes(90, 0.1), SplitMethod::kEnd); }),
      HasSubstr("validation and test take 90 and 10 samples, but the training set of \"mine\" has 100"));
}

}  // namespace
}  // namespace sweep
