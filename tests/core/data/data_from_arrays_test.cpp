// Arrays by name become a data set.
#include "core/data/data_from_arrays.h"

#include "core/data/data_loader.h"
#include "core/data/dataset.h"
#include "core/data/readers/readers.h"
#include "tests/support/data_files.h"

namespace sweep::data_from_arrays_test {

using test::bytes_of, test::npy_file;

NamedArray floats(const std::string& name, const Shape& shape, const std::vector<float>& values) {
  return {name, shape, values};
}
NamedArray labels(const std::string& name, const std::vector<std::int64_t>& values) {
  return {name, {static_cast<std::int64_t>(values.size())}, values};
}
NamedArray bytes(const std::string& name, const Shape& shape, const std::vector<std::uint8_t>& values) {
  return {name, shape, values};
}

Dataset made(std::vector<NamedArray> arrays, const DatasetSpec& spec = {}) {
  return data_from_arrays({std::move(arrays)}, spec, "FILE");
}

std::string error_of(const std::vector<NamedArray>& arrays, const DatasetSpec& spec = {}) {
  return message_of<DataError>([&] { made(arrays, spec); });
}

TEST(DataFromArrays, ReadsFeaturesAndLabels) {
  const Dataset data = made({labels("labels", {1, 0, 2}), floats("features", {3, 2}, {1, 2, 3, 4, 5, 6})});
  EXPECT_EQ(data.shape, (Shape{2}));
  EXPECT_THAT(data.class_names, ElementsAre("0", "1", "2"));
  EXPECT_THAT(data.train.labels(), ElementsAre(1, 0, 2));
  EXPECT_THAT(data.train.set->floats(), ElementsAre(1, 2, 3, 4, 5, 6));
}

TEST(DataFromArrays, ReadsParts) {
  const Dataset data =
      made({bytes("X_train", {2, 1}, {1, 2}), labels("y_train", {0, 1}), bytes("x_test", {1, 1}, {3}),
            labels("y_test", {1}), bytes("val_x", {1, 1}, {4}), labels("val_y", {0})},
           {});
  EXPECT_THAT(data.test.set->pixels(), ElementsAre(3));
  EXPECT_THAT(data.validation.labels(), ElementsAre(0));
}

TEST(DataFromArrays, TakesFloatsAsValues) {
  const Dataset one = made({floats("x", {2, 1}, {1, 2}), floats("y", {2}, {0.5f, 3})});
  EXPECT_THAT(one.target_names, ElementsAre("y"));
  EXPECT_THAT(one.train.numbers(), ElementsAre(0.5f, 3));
  const Dataset two = made({floats("x", {1, 1}, {1}), floats("y", {1, 2}, {0.5f, 3})});
  EXPECT_THAT(two.target_names, ElementsAre("y 0", "y 1"));
  DataArrays named{{floats("x", {1, 1}, {1}), floats("y", {1, 2}, {0.5f, 3})}, {}, {"width", "height"}};
  EXPECT_THAT(data_from_arrays(named, {}, "FILE").target_names, ElementsAre("width", "height"));
  named.target_names = {"width"};
  EXPECT_THAT(message_of<DataError>([&] { data_from_arrays(named, {}, "FILE"); }),
              HasSubstr("has 2 numbers per sample, but 1 names"));
}

TEST(DataFromArrays, FollowsTheNamesInTheOptions) {
  const std::vector<NamedArray> arrays = {floats("x", {2, 1}, {1, 2}), labels("kind", {0, 1}),
                                          labels("age", {70, 3})};
  const Dataset classes = made(arrays, {.label = "kind"});
  EXPECT_EQ(classes.class_names.size(), 2u);
  EXPECT_THAT(classes.notes, ElementsAre("FILE: array \"age\" is not used"));
  EXPECT_THAT(made(arrays, {.targets = {"age"}}).train.numbers(), ElementsAre(70, 3));
}

TEST(DataFromArrays, TakesFloatsAsValuesWhateverTheirName) {
  const Dataset data = made({floats("x", {2, 1}, {1, 2}), floats("labels", {2}, {1, 0})});
  EXPECT_THAT(data.train.numbers(), ElementsAre(1, 0));
  EXPECT_THAT(data.notes, ElementsAre(HasSubstr("\"label\": \"labels\" makes whole numbers classes")));
}

TEST(DataFromArrays, TakesWholeFloatsAsClassesIfTheOptionsNameThem) {
  const std::vector<NamedArray> arrays = {floats("x", {2, 1}, {1, 2}), floats("labels", {2}, {1, 0})};
  EXPECT_THAT(made(arrays, {.label = "labels"}).train.labels(), ElementsAre(1, 0));
}

TEST(DataFromArrays, NeverCutsALabel) {
  std::vector<NamedArray> arrays = {floats("x", {2, 1}, {1, 2}), floats("labels", {2}, {1, 0}),
                                    floats("x_test", {3, 1}, {1, 2, 3}),
                                    floats("labels_test", {3}, {0.6f, 1.9f, 0.2f})};
  EXPECT_THAT(made(arrays).test.numbers(), ElementsAre(0.6f, 1.9f, 0.2f));
  EXPECT_THAT(
      error_of(arrays, {.label = "labels"}),
      HasSubstr("array \"labels_test\": the label 0.600000 of sample 0 (from 0) is not a whole number"));
  arrays[1] = labels("labels", {1, 0});
  EXPECT_EQ(
      error_of(arrays),
      "FILE: array \"labels_test\" holds floats, but \"labels\" holds integers; \"label\" or \"target\" says "
      "whether they are classes or numbers");
  EXPECT_THAT(error_of({floats("x", {1, 1}, {1}), floats("k", {1, 2}, {1, 0})}, {.label = "k"}),
              HasSubstr("classes are one number per sample"));
}

TEST(DataFromArrays, GivesImagesAChannel) {
  EXPECT_EQ(made({bytes("x", {1, 2, 3}, {1, 2, 3, 4, 5, 6}), labels("y", {0})}).shape, (Shape{1, 2, 3}));
}

TEST(DataFromArrays, MovesChannelsToTheFront) {
  std::vector<std::uint8_t> values(4 * 5 * 3);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::uint8_t>(i);
  const NamedArray borrowed{"x", {1, 4, 5, 3}, MaybeOwnedArray<std::uint8_t>(values)};
  for (const NamedArray& array : {bytes("x", {1, 4, 5, 3}, values), borrowed}) {
    const Dataset data = made({array, labels("y", {0})});
    EXPECT_EQ(data.shape, (Shape{3, 4, 5}));
    const auto& moved = data.train.set->pixels();
    EXPECT_EQ(moved[0], 0);
    EXPECT_EQ(moved[1], 3);
    EXPECT_EQ(moved[20], 1);
    EXPECT_EQ(moved[59], 59);
  }
}

TEST(DataFromArrays, AsksWhereTheChannelsAreIfTheShapeDoesNotSay) {
  const std::vector<std::uint8_t> values(8 * 6 * 7 * 2, 1);
  const std::vector<NamedArray> arrays = {bytes("x", {8, 6, 7, 2}, values),
                                          labels("y", std::vector<std::int64_t>(8))};
  EXPECT_EQ(error_of(arrays),
            "FILE: array \"x\" has shape [8, 6, 7, 2]: it does not say where the channels are; "
            "\"channels\": \"first\" means [6, 7, 2], \"last\" [2, 6, 7]");
  EXPECT_EQ(made(arrays, {.channels = ChannelOrder::kFirst}).shape, (Shape{6, 7, 2}));
  EXPECT_EQ(made(arrays, {.channels = ChannelOrder::kLast}).shape, (Shape{2, 6, 7}));
  for (const Shape& clear : {Shape{1, 64, 7, 7}, Shape{1, 2, 9, 5}, Shape{1, 4, 9, 2}, Shape{1, 3, 32, 1}}) {
    const std::vector<std::uint8_t> one(element_count(clear));
    EXPECT_EQ(made({bytes("x", clear, one), labels("y", {0})}).shape, (Shape{clear[1], clear[2], clear[3]}));
  }
}

TEST(DataFromArrays, AsksWhereTheChannelsAreIfBothEndsMayBeChannels) {
  for (const Shape& shape : {Shape{2, 3, 8, 3}, {2, 1, 8, 3}, {2, 2, 8, 3}}) {
    std::vector<std::uint8_t> values(element_count(shape));
    EXPECT_THAT(error_of({bytes("x", shape, values), labels("y", {0, 1})}),
                HasSubstr("it does not say where the channels are"));
  }
}

TEST(SamplesFromArrays, FindTheChannelsByTheNetworksShape) {
  std::vector<std::uint8_t> values(60);
  values[1] = 7;
  const NamedArray array = bytes("x", {1, 6, 5, 2}, values);
  const auto pixel = [&](const Shape& wanted, std::size_t i) {
    return std::get<0>(samples_from_arrays({array}, MissingValues::kError, wanted, "FILE"))[i];
  };
  EXPECT_EQ(pixel({6, 5, 2}, 1), 7);
  EXPECT_EQ(pixel({2, 6, 5}, 30), 7) << "the second channel";
  EXPECT_THROW(pixel({5, 6, 2}, 0), DataError);
}

TEST(DataFromArrays, RefusesWhatDoesNotFitTogether) {
  EXPECT_EQ(error_of({floats("x", {2, 1}, {1, 2}), labels("y", {0})}),
            "FILE: array \"x\" holds 2 samples, but \"y\" holds 1 targets");
  EXPECT_EQ(error_of({floats("x", {1, 1}, {1})}),
            "FILE: has no array of targets, called \"labels\", \"y\" or \"y_train\"; there are: \"x\"");
  EXPECT_THAT(error_of({labels("y", {1})}), HasSubstr("has no array of samples, called \"features\""));
  EXPECT_THAT(error_of({}), HasSubstr("there are: none"));
  std::vector<NamedArray> many;
  for (int i = 0; i < 65000; ++i) many.push_back(labels("k" + std::to_string(i), {1}));
  EXPECT_THAT(error_of(many), EndsWith("\"k18\", \"k19\" and 64980 more"));
  EXPECT_THAT(error_of({floats("x", {1, 1}, {1}), floats("data", {1, 1}, {1}), labels("y", {0})}),
              HasSubstr("both \"x\" and \"data\" could be the samples"));
  EXPECT_THAT(error_of({floats("x", {1, 1}, {1}), labels("y", {0}), floats("x_test", {1, 1}, {1})}),
              HasSubstr("has only samples of the test part"));
  EXPECT_THAT(error_of({floats("x", {1, 2}, {1, 2}), labels("y", {0}), floats("x_test", {1, 1}, {1}),
                        labels("y_test", {0})}),
              HasSubstr("array \"x_test\" has shape [1, 1], but \"x\" has [1, 2]"));
}

TEST(DataFromArrays, RefusesArraysOfAnotherSizeOrType) {
  EXPECT_EQ(error_of({floats("x", {2, 2}, {1, 2, 3}), labels("y", {0, 1})}),
            "FILE: array \"x\" has shape [2, 2], but holds 3 values");
  EXPECT_THAT(error_of({floats("x", {0, 2}, {}), labels("y", {0})}), HasSubstr("holds no samples"));
  EXPECT_THAT(error_of({floats("x", {1, 1}, {1}), labels("y", {0}), bytes("x_test", {1, 1}, {1}),
                        labels("y_test", {0})}),
              HasSubstr("one part holds bytes, another floats"));
}

TEST(DataFromArrays, RefusesLabelsOutOfRange) {
  EXPECT_THAT(error_of({floats("x", {1, 1}, {1}), labels("y", {-1})}),
              HasSubstr("array \"y\": label -1 of sample 0 (from 0) is out of range"));
  EXPECT_THAT(error_of({floats("x", {1, 1}, {1}), labels("y", {0}), floats("x_test", {1, 1}, {1}),
                        labels("y_test", {3})}),
              HasSubstr("array \"y_test\": label 3 of sample 0 (from 0) is out of range: 0 to 0"));
  const DataArrays named{{floats("x", {1, 1}, {1}), labels("y", {2})}, {"a", "b"}};
  EXPECT_THAT(message_of<DataError>([&] { data_from_arrays(named, {}, "FILE"); }),
              HasSubstr("label 2 of sample 0 (from 0) is out of range: 0 to 1"));
}

TEST(DataFromArrays, RefusesNanUnlessItMeansMissing) {
  const std::vector<NamedArray> arrays = {floats("x", {3, 1}, {1, NAN, 5}), labels("y", {0, 0, 1})};
  EXPECT_THAT(error_of(arrays), HasSubstr("array \"x\" holds NaN in sample 1 (from 0)"));
  EXPECT_THAT(made(arrays, {.missing = MissingValues::kMean}).train.set->floats(), ElementsAre(1, 3, 5));
  EXPECT_THAT(error_of({floats("x", {1, 1}, {INFINITY}), labels("y", {0})}),
              HasSubstr("holds infinity in sample 0"));
  EXPECT_THAT(error_of({floats("x", {1, 1}, {1}), floats("y", {1}, {NAN})}),
              HasSubstr("is not a finite number"));
}

TEST(MakeDataset, NormalizesOnlyWhatItIsAskedToAndTakesTheShapeAsItIs) {
  // Ten samples of two floats, of classes 0, 1, 2, 0, …
  std::vector<float> values;
  std::vector<std::int64_t> classes;
  for (int i = 0; i < 10; ++i) {
    values.insert(values.end(), {static_cast<float>(i), 0.5f});
    classes.push_back(i % 3);
  }
  const DataArrays ten{{floats("x", {10, 2}, values), labels("y", classes)}};
  const Dataset plain = make_dataset(ten, {.validation = std::size_t{3}});
  EXPECT_EQ(plain.name, "memory");
  EXPECT_EQ(plain.transform, InputTransform{});
  DataLoader loader(plain.validation, {.batch_size = 3});
  loader.begin_epoch(0);
  const Batch* batch = loader.next();
  ASSERT_NE(batch, nullptr);
  EXPECT_EQ(batch->floats()[batch->indices[0] * 2], 7.0f);
  EXPECT_EQ(batch->labels()[batch->indices[0]], 1);
  const Dataset asked = make_dataset(
      ten,
      {.test = 0.2, .split = SplitMethod::kStratified, .limit = 6, .normalization = Normalization::kTrain});
  EXPECT_EQ(asked.train.count, 6u);
  EXPECT_EQ(asked.test.count, 2u);
  ASSERT_EQ(asked.transform.mean.size(), 2u);
  EXPECT_EQ(asked.transform.mean[1], 0.5f);
  EXPECT_EQ(asked.transform.std[1], 1.0f) << "a constant feature";
  const DataArrays rows{{bytes("x", {1, 4, 5, 3}, std::vector<std::uint8_t>(60)), labels("y", {0})}};
  EXPECT_EQ(make_dataset(rows).shape, (Shape{4, 5, 3})) << "channels in front";
}

TEST(ReadNpyFiles, ReadsAFolderOfArrays) {
  const TemporaryDirectory directory;
  directory.write("features.npy", npy_file("<f4", "(2, 1)", bytes_of<float>({1, 2})));
  directory.write("labels.npy", npy_file("<i8", "(2,)", bytes_of<std::int64_t>({1, 0})));
  const fs::path path = directory.path();
  EXPECT_TRUE(is_npy(path));
  EXPECT_TRUE(is_npy(path / "features.npy"));
  const Dataset data = data_from_arrays(read_npy_files(std::span(&path, 1), {}), {}, "FOLDER");
  EXPECT_THAT(data.train.labels(), ElementsAre(1, 0));
  ASSERT_EQ(data.files.size(), 2u);
  EXPECT_EQ(data.files[0].sha256.size(), 64u);
}

}  // namespace sweep::data_from_arrays_test
