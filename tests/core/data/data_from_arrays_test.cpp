// Arrays by name become a data set.
#include "core/data/data_from_arrays.h"

#include "core/base/file.h"
#include "core/data/data_loader.h"
#include "core/data/dataset.h"
#include "tests/support/dataset_rows.h"

namespace sweep::data_from_arrays_test {

const NamedArray kLabel{"y", {1}, std::vector<std::int64_t>{0}};

Dataset made(std::vector<NamedArray> arrays) { return data_from_arrays({std::move(arrays)}, {}, "FILE"); }

// ["x", "floats", [2, 1], [0.5, 1]]: its name, the type of its values, its shape, and the values, of which
// null is NaN and "inf" infinity; without them, zeros.
NamedArray array_from(const nlohmann::json& array) {
  NamedArray made{array.at(0), array.at(2), {}};
  const std::string type = array.at(1);
  std::vector<double> values(element_count(made.shape));
  if (array.size() > 3) {
    values.clear();
    for (const auto& value : array.at(3))
      values.push_back(value.is_null() ? NAN : value.is_string() ? HUGE_VAL : value.get<double>());
  }
  const auto set = [&]<typename T>(T) { made.values = std::vector<T>(values.begin(), values.end()); };
  type == "bytes" ? set(std::uint8_t{}) : type == "floats" ? set(float{}) : set(std::int64_t{});
  return made;
}

// A row of read_arrays.json: arrays, names of classes or targets, columns as their names and categories, and
// keys of the data set.
TEST(DataFromArrays, GivesWhatItsRowSays) {
  const auto rows = nlohmann::json::parse(read_file(SWEEP_TEST_DATA "/read_arrays.json"));
  ASSERT_GE(rows.size(), 72u);
  for (const auto& row : rows) {
    DataArrays data;
    data.class_names = row.value("class_names", std::vector<std::string>());
    data.target_names = row.value("target_names", std::vector<std::string>());
    for (const auto& array : row.at("arrays")) data.arrays.push_back(array_from(array));
    for (const auto& column : row.value("columns", nlohmann::json::array())) {
      auto words = column.get<std::vector<std::string>>();
      data.columns.push_back({words[0], {words.begin() + 1, words.end()}, words.size() > 1});
    }
    test::expect_row(row, [&] { return data_from_arrays(data, test::dataset_spec_of(row), "FILE"); });
  }
}

TEST(DataFromArrays, NamesSomeOfTheArraysThatThereAre) {
  std::vector<NamedArray> many;
  for (int i = 0; i < 65000; ++i) many.emplace_back(kLabel).name = "k" + std::to_string(i);
  EXPECT_THAT(message_of<DataError>([&] { made(many); }), EndsWith("\"k18\", \"k19\" and 64980 more"));
}

TEST(DataFromArrays, MovesChannelsToTheFront) {
  std::vector<std::uint8_t> values(4 * 5 * 3);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::uint8_t>(i);
  const MaybeOwnedArray<std::uint8_t> owned(values), borrowed(values, std::make_shared<int>());
  for (const auto& bytes : {owned, borrowed}) {
    const Dataset data = made({{"x", {1, 4, 5, 3}, bytes}, kLabel});
    EXPECT_EQ(data.shape, (Shape{3, 4, 5}));
    const auto& moved = data.train.set->pixels();
    EXPECT_EQ(moved[0], 0);
    EXPECT_EQ(moved[1], 3);
    EXPECT_EQ(moved[20], 1);
    EXPECT_EQ(moved[59], 59);
  }
}

TEST(SamplesFromArrays, FindTheChannelsByTheNetworksShape) {
  std::vector<std::uint8_t> values(60);
  values[1] = 7;
  const NamedArray array{"x", {1, 6, 5, 2}, values};
  const auto pixel = [&](const Shape& wanted, std::size_t i) {
    return std::get<0>(samples_from_arrays({array}, MissingValues::kError, wanted, "FILE"))[i];
  };
  EXPECT_EQ(pixel({6, 5, 2}, 1), 7);
  EXPECT_EQ(pixel({2, 6, 5}, 30), 7) << "the second channel";
  EXPECT_EQ(message_of<DataError>([&] {
              pixel({5, 6, 2}, 0);
            }),
            "FILE: its samples are [6, 5, 2], those that the network was trained on [5, 6, 2]");
}

TEST(MakeDataset, NormalizesOnlyWhatItIsAskedToAndTakesTheShapeAsItIs) {
  // Ten samples of two floats, of classes 0, 1, 2, 0, …
  std::vector<float> values;
  std::vector<std::int64_t> classes;
  for (int i = 0; i < 10; ++i) {
    values.insert(values.end(), {static_cast<float>(i), 0.5f});
    classes.push_back(i % 3);
  }
  const DataArrays ten{{{"x", {10, 2}, values}, {"y", {10}, classes}}};
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
  const DataArrays rows{{{"x", {1, 4, 5, 3}, std::vector<std::uint8_t>(60)}, kLabel}};
  EXPECT_EQ(make_dataset(rows).shape, (Shape{4, 5, 3})) << "channels in front";
}

}  // namespace sweep::data_from_arrays_test
