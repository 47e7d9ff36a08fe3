// Which samples become training, validation and test samples.
#include "core/data/dataset_parts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "core/base/error.h"
#include "core/base/mapped_file.h"
#include "core/data/data_loader.h"
#include "tests/support/message_of.h"
#include "tests/support/temporary_directory.h"

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
    const int number = std::get<std::span<const std::uint8_t>>(samples.set->sample(samples.first + i))[0];
    EXPECT_EQ(samples.set->labels()[samples.first + i], number < 60 ? 0 : number < 90 ? 1 : 2);
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

// The same in a mapped file, as if that were larger than memory.
RawData mapped_samples() {
  const test::TemporaryDirectory directory;
  RawData raw = sorted_samples();
  const auto& bytes = std::get<std::vector<std::uint8_t>>(raw.train.samples);
  const auto path = directory.write("samples", std::string(bytes.begin(), bytes.end()));
  raw.mapping = std::make_shared<const MappedFile>(open_regular_file(path), MapUse::kPieces);
  raw.train.samples = MaybeOwnedArray<std::uint8_t>(raw.mapping->bytes(), raw.mapping);
  return raw;
}

TEST(SplitSamples, LeavesSamplesInAFileWhereTheyAre) {
  DatasetSpec spec = with_sizes(30, 0.1);
  spec.limit = 25;
  for (const SplitMethod method : {SplitMethod::kEnd, SplitMethod::kRandom, SplitMethod::kStratified}) {
    const RawData raw = mapped_samples();
    const auto* first = std::get<MaybeOwnedArray<std::uint8_t>>(raw.train.samples).data();
    const auto raw_file = raw.mapping;
    const DatasetParts found = split_samples(raw, spec, method, true),
                       expected = split_samples(sorted_samples(), spec, method, true);
    EXPECT_EQ(found.train.set->pixels().data(), first);
    EXPECT_EQ(found.train.set->file, raw_file);
    for (const auto part : {&DatasetParts::train, &DatasetParts::validation, &DatasetParts::test})
      EXPECT_EQ(numbers_of(found.*part), numbers_of(expected.*part));
    EXPECT_EQ(found.transform, expected.transform);
    // Batches refer to the stored samples, and those that workers gather are equal.
    for (const int workers : {0, 2}) {
      DataLoader loader(found.train, {.batch_size = 10, .shuffle = true, .num_workers = workers, .seed = 3}),
          other(expected.train, {.batch_size = 10, .shuffle = true, .seed = 3});
      loader.begin_epoch(1);
      other.begin_epoch(1);
      while (const Batch* batch = loader.next()) {
        const Batch* wanted = other.next();
        ASSERT_NE(wanted, nullptr);
        ASSERT_EQ(batch->size(), wanted->size());
        for (std::size_t i = 0; i < batch->size(); ++i) {
          EXPECT_EQ(batch->pixels()[batch->rows[i]], wanted->pixels()[wanted->rows[i]]);
          EXPECT_EQ(batch->labels()[batch->rows[i]], wanted->labels()[wanted->rows[i]]);
        }
      }
      EXPECT_EQ(other.next(), nullptr);
    }
  }
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

// Floats of two features, the second an indicator, with two numbers as targets: sample i is {i, i odd}, its
// targets {i, −i}.
RawData numbered_rows(std::size_t count) {
  RawData raw;
  raw.shape = {2};
  raw.feature_names = {"size", "colour=red"};
  raw.is_indicator = {false, true};
  raw.value_names = {"a", "b"};
  raw.train.count = count;
  std::vector<float> values;
  for (std::size_t i = 0; i < count; ++i) {
    values.insert(values.end(), {static_cast<float>(i), static_cast<float>(i % 2)});
    raw.train.values.insert(raw.train.values.end(), {static_cast<float>(i), -static_cast<float>(i)});
  }
  raw.train.samples = std::move(values);
  return raw;
}

TEST(SplitSamples, KeepsFloatsTogetherWithTheirNumbers) {
  const DatasetParts parts = split_samples(numbered_rows(50), with_sizes(10, 0.2), SplitMethod::kRandom);
  std::set<float> seen;
  for (const Samples* part : {&parts.train, &parts.validation, &parts.test}) {
    for (std::size_t i = part->first; i < part->first + part->count; ++i) {
      const float first = part->set->floats()[2 * i];
      EXPECT_TRUE(seen.insert(first).second);
      EXPECT_EQ(part->set->numbers()[2 * i], first);
      EXPECT_EQ(part->set->numbers()[2 * i + 1], -first);
    }
  }
  EXPECT_EQ(seen.size(), 50u);
  EXPECT_THAT(message_of<ConfigError>(
                  [] { split_samples(numbered_rows(50), with_sizes(10, 0.2), SplitMethod::kStratified); }),
              HasSubstr("the targets of \"mine\" are numbers: \"random\" is possible"));
}

TEST(SplitSamples, MeasuresTheTrainingSamplesOnly) {
  DatasetSpec spec = with_sizes(4, 0.0);
  spec.limit = 4;
  const DatasetParts parts = split_samples(numbered_rows(10), spec, SplitMethod::kEnd, true);
  EXPECT_THAT(parts.transform.mean, testing::ElementsAre(1.5f, 0)) << "of 0, 1, 2, 3; indicators stay";
  EXPECT_THAT(parts.transform.std, testing::ElementsAre(testing::FloatEq(std::sqrt(1.25f)), 1));
  EXPECT_EQ(split_samples(numbered_rows(10), spec, SplitMethod::kEnd).transform, InputTransform{});
}

TEST(SplitSamples, MeasuresBytesPerChannelAndConstantsAsZero) {
  RawData raw = sorted_samples();
  raw.shape = {2, 1, 1};
  raw.train.count = 50;
  raw.train.classes.resize(50);
  std::get<std::vector<std::uint8_t>>(raw.train.samples) = std::vector<std::uint8_t>(100, 51);
  for (std::size_t i = 0; i < 100; i += 4) std::get<std::vector<std::uint8_t>>(raw.train.samples)[i] = 153;
  const InputTransform transform = split_samples(raw, with_sizes(0, 0.0), SplitMethod::kEnd, true).transform;
  EXPECT_THAT(transform.mean, testing::ElementsAre(testing::FloatEq(0.4f), testing::FloatEq(0.2f)));
  EXPECT_THAT(transform.std, testing::ElementsAre(testing::FloatEq(0.2f), 1));
}

TEST(SplitSamples, MissingValuesBecomeTheMeanOfTheTrainingSamples) {
  RawData raw = numbered_rows(6);  // 0, 1, 2, missing | 4, missing
  std::get<std::vector<float>>(raw.train.samples)[2 * 3] = NAN;
  std::get<std::vector<float>>(raw.train.samples)[2 * 5] = NAN;
  raw.test = raw.train;
  const DatasetParts parts = split_samples(raw, with_sizes(2, 0.0), SplitMethod::kEnd, true);
  EXPECT_EQ(parts.train.set->floats()[2 * 3], 1);
  EXPECT_EQ(parts.validation.set->floats()[2 * 5], 1);
  EXPECT_EQ(parts.test.set->floats()[2 * 5], 1);
  EXPECT_EQ(parts.transform.mean[0], 1);
  EXPECT_FLOAT_EQ(parts.transform.std[0], std::sqrt(0.5f)) << "with the values put in";
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
