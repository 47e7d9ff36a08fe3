// Which samples become training, validation and test samples, where a table cannot say it.
#include "core/data/data_from_arrays.h"

#include "core/base/mapped_file.h"
#include "core/data/data_loader.h"
#include "tests/support/test.h"

namespace sweep::dataset_parts_test {

// 60 samples of class 0, 30 of class 1, 10 of class 2, class by class; the only byte of a sample is its
// number.
DataArrays sorted_samples() {
  std::vector<std::uint8_t> bytes;
  std::vector<std::int64_t> classes;
  for (int i = 0; i < 100; ++i) {
    bytes.push_back(static_cast<std::uint8_t>(i));
    classes.push_back(i < 60 ? 0 : i < 90 ? 1 : 2);
  }
  return {{{"x", {100, 1, 1, 1}, std::move(bytes)}, {"y", {100}, std::move(classes)}}, {"a", "b", "c"}};
}

Dataset split(DataArrays arrays, DatasetSpec spec, SplitMethod method, bool measure = false) {
  spec.split = method;
  spec.normalization = measure ? Normalization::kTrain : Normalization::kNone;
  return data_from_arrays(std::move(arrays), spec, "SOURCE");
}

std::vector<int> numbers_of(const Subset& samples) {
  std::vector<int> numbers;
  for (std::size_t i = 0; i < samples.count; ++i) {
    const int number = std::get<std::span<const std::uint8_t>>(samples.set->sample(samples.row(i)))[0];
    EXPECT_EQ(samples.labels()[i], number < 60 ? 0 : number < 90 ? 1 : 2);
    numbers.push_back(number);
  }
  return numbers;
}

std::vector<std::size_t> class_counts(const Subset& samples) {
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
DataArrays mapped_samples() {
  const test::TemporaryDirectory directory;
  DataArrays arrays = sorted_samples();
  ArrayValues& samples = arrays.arrays[0].values;
  const auto& bytes = std::get<0>(samples);
  const auto path = directory.write("samples", std::string(bytes.begin(), bytes.end()));
  arrays.mapping = std::make_shared<const MappedFile>(open_regular_file(path), MapUse::kPieces);
  samples = MaybeOwnedArray<std::uint8_t>(arrays.mapping->bytes(), arrays.mapping);
  return arrays;
}

TEST(SplitSamples, LeavesSamplesInAFileWhereTheyAre) {
  DatasetSpec spec = with_sizes(30, 0.1);
  spec.limit = 25;
  for (const SplitMethod method : {SplitMethod::kEnd, SplitMethod::kRandom, SplitMethod::kStratified}) {
    const DataArrays arrays = mapped_samples();
    const auto* first = arrays.mapping->bytes().data();
    const auto raw_file = arrays.mapping;
    const Dataset found = split(arrays, spec, method, true),
                  expected = split(sorted_samples(), spec, method, true);
    EXPECT_EQ(found.train.set->pixels().data(), first);
    EXPECT_EQ(found.train.set->file, raw_file);
    for (const auto part : {&Dataset::train, &Dataset::validation, &Dataset::test})
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
          EXPECT_EQ(batch->pixels()[batch->indices[i]], wanted->pixels()[wanted->indices[i]]);
          EXPECT_EQ(batch->labels()[batch->indices[i]], wanted->labels()[wanted->indices[i]]);
        }
      }
      EXPECT_EQ(other.next(), nullptr);
    }
  }
}

TEST(SplitSamples, GivesEachSampleToOnePart) {
  for (const SplitMethod method : {SplitMethod::kRandom, SplitMethod::kStratified}) {
    const Dataset parts = split(sorted_samples(), with_sizes(20, 0.1), method);
    std::set<int> all;
    for (const Subset* part : {&parts.train, &parts.validation, &parts.test}) {
      for (const int number : numbers_of(*part)) EXPECT_TRUE(all.insert(number).second);
    }
    EXPECT_EQ(all.size(), 100u);
    EXPECT_EQ(parts.test.set, parts.train.set) << "without a copy";
    EXPECT_EQ(parts.validation.count, 20u);
    EXPECT_EQ(parts.test.count, 10u);
    EXPECT_FALSE(std::ranges::is_sorted(numbers_of(parts.train)));
  }
}

TEST(SplitSamples, FromTheEndCopiesNothing) {
  const Dataset parts = split(sorted_samples(), with_sizes(20, 0.1), SplitMethod::kEnd);
  EXPECT_EQ(parts.test.set, parts.train.set);
}

TEST(SplitSamples, StratifiedTakesTheSamePartOfEveryClass) {
  const Dataset parts = split(sorted_samples(), with_sizes(20, 0.1), SplitMethod::kStratified);
  EXPECT_THAT(class_counts(parts.validation), ElementsAre(12, 6, 2));
  EXPECT_THAT(class_counts(parts.test), ElementsAre(6, 3, 1));
}

TEST(SplitSamples, DependsOnTheSplitSeedOnly) {
  DatasetSpec spec = with_sizes(20, 0.1);
  const auto validation = [&] {
    return numbers_of(split(sorted_samples(), spec, SplitMethod::kRandom).validation);
  };
  const std::vector<int> first = validation();
  EXPECT_EQ(validation(), first);
  spec.split_seed = 1;
  EXPECT_NE(validation(), first);
}

// Floats of two features with two numbers as targets: sample i is {i, i odd}, its targets {i, −i}.
DataArrays numbered_rows(std::size_t count) {
  std::vector<float> values, targets;
  for (std::size_t i = 0; i < count; ++i) {
    values.insert(values.end(), {static_cast<float>(i), static_cast<float>(i % 2)});
    targets.insert(targets.end(), {static_cast<float>(i), -static_cast<float>(i)});
  }
  const auto rows = static_cast<std::int64_t>(count);
  DataArrays arrays{{{"x", {rows, 2}, std::move(values)}, {"y", {rows, 2}, std::move(targets)}}};
  arrays.target_names = {"a", "b"};
  return arrays;
}

TEST(SplitSamples, KeepsFloatsTogetherWithTheirNumbers) {
  const Dataset parts = split(numbered_rows(50), with_sizes(10, 0.2), SplitMethod::kRandom);
  std::set<float> seen;
  for (const Subset* part : {&parts.train, &parts.validation, &parts.test}) {
    for (std::size_t i = 0; i < part->count; ++i) {
      const float first = part->set->floats()[2 * part->row(i)];
      EXPECT_TRUE(seen.insert(first).second);
      EXPECT_EQ(part->numbers()[2 * i], first);
      EXPECT_EQ(part->numbers()[2 * i + 1], -first);
    }
  }
  EXPECT_EQ(seen.size(), 50u);
  EXPECT_THAT(message_of<ConfigError>(
                  [] { split(numbered_rows(50), with_sizes(10, 0.2), SplitMethod::kStratified); }),
              HasSubstr("the targets of \"mine\" are numbers: \"random\" is possible"));
}

}  // namespace sweep::dataset_parts_test
