// Which samples become training, validation and test samples.
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

TEST(SplitSamples, TakesTheEndInTheOrderOfTheFiles) {
  const Dataset parts = split(sorted_samples(), with_sizes(20, 0.1), SplitMethod::kEnd);
  EXPECT_EQ(numbers_of(parts.train).back(), 69);
  EXPECT_EQ(numbers_of(parts.validation).front(), 70);
  EXPECT_EQ(numbers_of(parts.test).front(), 90);
  EXPECT_EQ(parts.test.set, parts.train.set) << "without a copy";
}

TEST(SplitSamples, TakesANumberOrAFractionThatLeavesSomethingToTrainOn) {
  using Size = std::variant<std::size_t, double>;
  const auto parts = [](Size validation) {
    DatasetSpec spec = with_sizes(0, 0);
    spec.validation = validation;
    return split(sorted_samples(), spec, SplitMethod::kEnd);
  };
  for (const auto& [validation, count] : {std::pair{Size{std::size_t{0}}, 0u},
                                          {std::size_t{1}, 1u},
                                          {std::size_t{99}, 99u},
                                          {0.0, 0u},
                                          {0.25, 25u},
                                          {0.298, 29u},
                                          {0.999, 99u}}) {
    EXPECT_EQ(parts(validation).validation.count, count);
    EXPECT_EQ(parts(validation).train.count, 100 - count);
  }
  const auto error = [&](Size validation) { return message_of<ConfigError>([&] { parts(validation); }); };
  EXPECT_EQ(
      error(std::size_t{100}),
      "validation takes 100 samples, but the training set of \"mine\" has 100: nothing is left to train "
      "on; at most 99 are possible");
  EXPECT_THAT(error(SIZE_MAX), HasSubstr("nothing is left"));
  for (const double fraction : {1.0, -0.1, 2.0, std::nan(""), HUGE_VAL})
    EXPECT_THAT(error(fraction), HasSubstr("must be at least 0 and less than 1"));
  EXPECT_EQ(error(0.008),
            "validation as a fraction is less than one of the 100 training samples, found 0.008: give a "
            "larger one, or a number of samples");
}

TEST(SplitSamples, GivesEachSampleToOnePart) {
  for (const SplitMethod method : {SplitMethod::kRandom, SplitMethod::kStratified}) {
    const Dataset parts = split(sorted_samples(), with_sizes(20, 0.1), method);
    std::set<int> all;
    for (const Subset* part : {&parts.train, &parts.validation, &parts.test}) {
      for (const int number : numbers_of(*part)) EXPECT_TRUE(all.insert(number).second);
    }
    EXPECT_EQ(all.size(), 100u);
    EXPECT_EQ(parts.validation.count, 20u);
    EXPECT_EQ(parts.test.count, 10u);
    EXPECT_FALSE(std::ranges::is_sorted(numbers_of(parts.train)));
  }
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

// Floats of two features, the second an indicator, with two numbers as targets: sample i is {i, i odd}, its
// targets {i, −i}.
DataArrays numbered_rows(std::size_t count) {
  std::vector<float> values, targets;
  for (std::size_t i = 0; i < count; ++i) {
    values.insert(values.end(), {static_cast<float>(i), static_cast<float>(i % 2)});
    targets.insert(targets.end(), {static_cast<float>(i), -static_cast<float>(i)});
  }
  const auto rows = static_cast<std::int64_t>(count);
  DataArrays arrays{{{"x", {rows, 2}, std::move(values)}, {"y", {rows, 2}, std::move(targets)}}};
  arrays.target_names = {"a", "b"};
  arrays.columns = {{.name = "size"}, {.name = "colour", .categories = {"red"}, .one_hot = true}};
  return arrays;
}

// The same samples once more as the source's own test part.
void add_test_part(DataArrays& arrays) {
  for (std::size_t i = 0; i < 2; ++i) {
    arrays.arrays.push_back(arrays.arrays[i]);
    arrays.arrays.back().name += "_test";
  }
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

TEST(SplitSamples, MeasuresTheTrainingSamplesOnly) {
  DatasetSpec spec = with_sizes(4, 0.0);
  spec.limit = 4;
  const Dataset parts = split(numbered_rows(10), spec, SplitMethod::kEnd, true);
  EXPECT_THAT(parts.transform.mean, ElementsAre(1.5f, 0)) << "of 0, 1, 2, 3; indicators stay";
  EXPECT_THAT(parts.transform.std, ElementsAre(FloatEq(std::sqrt(1.25f)), 1));
  EXPECT_EQ(split(numbered_rows(10), spec, SplitMethod::kEnd).transform, InputTransform{});
}

TEST(SplitSamples, MeasuresBytesPerChannelAndConstantsAsZero) {
  std::vector<std::uint8_t> bytes(100, 51);
  for (std::size_t i = 0; i < 100; i += 4) bytes[i] = 153;
  const DataArrays arrays{
      {{"x", {50, 2, 1, 1}, std::move(bytes)}, {"y", {50}, std::vector<std::int64_t>(50)}}};
  const InputTransform transform = split(arrays, with_sizes(0, 0.0), SplitMethod::kEnd, true).transform;
  EXPECT_THAT(transform.mean, ElementsAre(FloatEq(0.4f), FloatEq(0.2f)));
  EXPECT_THAT(transform.std, ElementsAre(FloatEq(0.2f), 1));
}

TEST(SplitSamples, MissingValuesBecomeTheMeanOfTheTrainingSamples) {
  DataArrays arrays = numbered_rows(6);  // 0, 1, 2, missing | 4, missing
  auto& values = std::get<std::vector<float>>(arrays.arrays[0].values);
  values[2 * 3] = NAN;
  values[2 * 5] = NAN;
  add_test_part(arrays);
  DatasetSpec spec = with_sizes(2, 0.0);
  spec.missing = MissingValues::kMean;
  const Dataset parts = split(arrays, spec, SplitMethod::kEnd, true);
  EXPECT_EQ(parts.train.set->floats()[2 * 3], 1);
  EXPECT_EQ(parts.validation.set->floats()[2 * 5], 1);
  EXPECT_EQ(parts.test.set->floats()[2 * 5], 1);
  EXPECT_EQ(parts.transform.mean[0], 1);
  EXPECT_FLOAT_EQ(parts.transform.std[0], std::sqrt(0.5f)) << "with the values put in";
}

TEST(SplitSamples, NotesClassesThatNothingIsLeftOf) {
  EXPECT_THAT(split(sorted_samples(), with_sizes(5, 0.2), SplitMethod::kEnd).notes,
              ElementsAre("\"mine\": no sample is left to train on of the classes \"c\"; \"split\": "
                          "\"stratified\" takes the same part of every class"));
  EXPECT_THAT(split(sorted_samples(), with_sizes(5, 0.0), SplitMethod::kEnd).notes, IsEmpty());
  EXPECT_THAT(split(sorted_samples(), with_sizes(5, 0.2), SplitMethod::kStratified).notes, IsEmpty());
  DataArrays four_classes = sorted_samples();
  four_classes.class_names.emplace_back("d");
  EXPECT_THAT(split(four_classes, with_sizes(5, 0.0), SplitMethod::kEnd).notes,
              ElementsAre("\"mine\": there is no sample to train on of the classes \"d\""));
}

TEST(SplitSamples, RefusesAFeatureWithoutAnyValueToTrainOn) {
  DataArrays arrays = numbered_rows(6);
  auto& values = std::get<std::vector<float>>(arrays.arrays[0].values);
  for (std::size_t row = 0; row < 4; ++row) values[2 * row + 1] = NAN;
  DatasetSpec spec = with_sizes(2, 0.0);
  spec.missing = MissingValues::kMean;
  EXPECT_THAT(message_of<DataError>([&] { split(arrays, spec, SplitMethod::kEnd); }),
              HasSubstr("column \"colour\" of \"mine\" has no value in the training samples"));
}

TEST(SplitSamples, RefusesToSplitOffWhatTheSourceHas) {
  DataArrays arrays = sorted_samples();
  add_test_part(arrays);
  EXPECT_EQ(
      message_of<ConfigError>([&] { split(arrays, with_sizes(0, 0.1), SplitMethod::kEnd); }),
      "test takes samples from the training set, but \"mine\" has a test set of its own: leave \"test\" out");
  EXPECT_THAT(
      message_of<ConfigError>([] { split(sorted_samples(), with_sizes(90, 0.1), SplitMethod::kEnd); }),
      HasSubstr("validation and test take 90 and 10 samples, but the training set of \"mine\" has 100"));
}

}  // namespace sweep::dataset_parts_test
