// Files that people give to a trained network.
#include "core/data/unlabelled_samples.h"

#include "core/data/sample_format.h"
#include "tests/support/file_rows.h"

namespace sweep::unlabelled_samples_test {

using Json = nlohmann::ordered_json;

struct Outcome {
  std::vector<std::string> names, skipped;  // "name: reason"
  std::vector<float> values;
  std::size_t calls = 0;
};

SampleFormat gray(std::int64_t side) {
  SampleFormat format;
  format.shape = {1, side, side};
  format.bytes = true;
  format.class_names = {"a", "b"};
  return format;
}

struct UnlabelledSamples : ::testing::Test {
  Outcome read(const std::vector<std::string>& names, const SampleFormat& format) const {
    Outcome outcome;
    std::vector<fs::path> files;
    for (const std::string& name : names) files.push_back(folder / name);
    const auto without_folder = [&](const std::string& text) {
      return text.starts_with(folder.path().string()) ? text.substr(folder.path().string().size() + 1) : text;
    };
    read_unlabelled(
        files, format, 2,
        [&](const SampleArray& samples, const std::vector<std::string>& sample_names) {
          ++outcome.calls;
          std::ranges::transform(sample_names, std::back_inserter(outcome.names), without_folder);
          const auto add = [&](const auto& all) {
            outcome.values.insert(outcome.values.end(), all.begin(), all.end());
          };
          std::visit(add, samples);
        },
        [&](const SkippedFile& file) {
          outcome.skipped.push_back(without_folder(file.path.string()) + ": " + file.reason);
        });
    return outcome;
  }

  const TemporaryDirectory folder;
};

// A row of unlabelled_samples.json: files, which are read in their order or as "read" says, for a network
// that was trained on samples of this "format".
TEST_F(UnlabelledSamples, AreWhatTheirRowSays) {
  const auto rows = Json::parse(read_file(SWEEP_TEST_DATA "/unlabelled_samples.json"));
  ASSERT_GE(rows.size(), 10u);
  for (const Json& row : rows) {
    SCOPED_TRACE(row.dump());
    std::vector<std::string> names;
    for (const auto& [name, content] : row.at("files").items()) names.push_back(name);
    test::write_files(folder, row.at("files"));
    const Outcome outcome = read(row.value("read", names), sample_format_from_json(row.at("format"), "ROW"));
    EXPECT_EQ(outcome.names, row.at("names").get<std::vector<std::string>>());
    EXPECT_EQ(outcome.values, row.at("values").get<std::vector<float>>());
    ASSERT_EQ(outcome.skipped.size(), row.at("skipped").size());
    for (std::size_t i = 0; i < outcome.skipped.size(); ++i)
      EXPECT_THAT(outcome.skipped[i], HasSubstr(row.at("skipped").at(i).get<std::string>()));
    for (const std::string& name : names) fs::remove_all(folder / name);
  }
}

TEST_F(UnlabelledSamples, NameLinksToNothingInAFolder) {
  folder.write("in/deep/1.png", test::png_file(test::flat_pixels(3, 3, {0})));
  std::filesystem::create_symlink("nowhere.png", folder / "in/2.png");
  std::filesystem::create_symlink("3.png", folder / "in/3.png");
  std::filesystem::create_directory_symlink(folder.path(), folder / "in/deep/circle");
  const Outcome outcome = read({"in"}, gray(1));
  EXPECT_THAT(outcome.names, ElementsAre("in/deep/1.png"));
  EXPECT_THAT(outcome.skipped, ElementsAre("in/2.png: no such file",
                                           "in/3.png: cannot open: Too many levels of symbolic links"));
}

TEST_F(UnlabelledSamples, OfManyPicturesComeInPieces) {
  const std::string file = test::png_file(test::flat_pixels(1, 1, {9}));
  folder.write("a.png", file);
  const Outcome outcome = read(std::vector<std::string>(1100, "a.png"), gray(1));
  EXPECT_EQ(outcome.names.size(), 1100u);
  EXPECT_EQ(outcome.calls, 3u);
}

// What a run records of its samples.

const char* const kTable =
    "size,colour,label\n1,red,yes\nNA,blue,no\n3,red,no\n2,blue,yes\n5,green,yes\n4,red,no\n";

TEST(SampleFormat, OfATableHasItsColumnsAndWhatNormalisesThem) {
  const test::TemporaryDirectory directory;
  DatasetSpec spec;
  spec.name = "t";
  spec.path = directory.write("t.csv", kTable);
  spec.missing = MissingValues::kMean;
  const SampleFormat format = load_dataset(spec);
  EXPECT_EQ(format.columns,
            (std::vector<FeatureColumn>{{"size", {}, false}, {"colour", {"blue", "green", "red"}, true}}));
  EXPECT_EQ(format.shape, Shape({4}));
  EXPECT_FALSE(format.bytes);
  EXPECT_EQ(format.class_names, (std::vector<std::string>{"no", "yes"}));
  ASSERT_EQ(format.fill_values.size(), 4u);
  EXPECT_EQ(format.fill_values[0], 3.0f) << "the mean of 1, 3, 2, 5, 4";
  EXPECT_EQ(sample_format_from_json(to_json(format), "run.json"), format);
}

TEST(SampleFormat, ThatIsNoneIsRefused) {
  const Json good = {{"shape", {1, 4, 4}},
                     {"type", "uint8"},
                     {"classes", {"a", "b"}},
                     {"normalize", {{"mean", {0.5}}, {"std", {0.25}}}}};
  EXPECT_TRUE(sample_format_from_json(good, "run.json").bytes);
  const auto refused = [&](const char* key, const Json& value) {
    Json json = good;
    json[key] = value;
    return message_of<DataError>([&] { sample_format_from_json(json, "run.json"); });
  };
  EXPECT_THAT(refused("shape", {1, 4}), HasSubstr("run.json: not a description of samples"));
  EXPECT_THAT(refused("shape", {1, -4, 4}), HasSubstr("its shape is no size"));
  EXPECT_THAT(refused("shape", {1 << 30, 1 << 30, 1 << 30}), HasSubstr("its shape is no size"));
  EXPECT_THAT(refused("targets", {"x"}), HasSubstr("neither classes nor targets"));
  EXPECT_THAT(refused("normalize", {{"mean", {0, 0}}, {"std", {1, 1}}}),
              HasSubstr("give one of each per channel"));
  EXPECT_THAT(refused("normalize", {{"mean", {0}}, {"std", {0}}}), HasSubstr("std must be greater than 0"));
  EXPECT_THAT(refused("missing", {1, 2}), HasSubstr("its fill values"));
  EXPECT_THAT(refused("columns", {{{"name", "x"}}}), HasSubstr("its columns make other features"));
  EXPECT_THAT(refused("type", 3), HasSubstr("not a description of samples"));
}

}  // namespace sweep::unlabelled_samples_test
