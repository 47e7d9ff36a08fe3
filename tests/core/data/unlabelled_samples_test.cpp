// Files that people give to a trained network.
#include "core/data/unlabelled_samples.h"

#include <nlohmann/json.hpp>

#include "core/data/sample_format.h"
#include "tests/support/image_files.h"

namespace sweep::unlabelled_samples_test {

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

TEST_F(UnlabelledSamples, OfPicturesAreResizedAndGrayAsInTraining) {
  folder.write("b/2.png", test::png_file(test::flat_pixels(9, 7, {40})));
  folder.write("b/1.png", test::png_file(test::flat_pixels(3, 3, {0, 255, 0})));
  folder.write("b/.hidden.png", test::png_file(test::flat_pixels(9, 7, {40})));
  folder.write("b/cut.png", test::png_file(test::flat_pixels(9, 7, {40})).substr(0, 50));
  folder.write("b/empty.png", "");
  folder.write("b/notes.txt", "hello");
  const Outcome outcome = read({"b", "none.png"}, gray(2));
  EXPECT_THAT(outcome.names, ElementsAre("b/1.png", "b/2.png"));
  EXPECT_THAT(outcome.values, ElementsAre(150, 150, 150, 150, 40, 40, 40, 40)) << "38470 / 65536 of green";
  EXPECT_THAT(outcome.skipped, ElementsAre(HasSubstr("b/cut.png: "), "b/empty.png: is empty",
                                           HasSubstr("b/notes.txt: the network takes pictures (JPEG"),
                                           "none.png: no such file"));
}

TEST_F(UnlabelledSamples, NameLinksToNothingInAFolder) {
  folder.write("in/deep/1.png", test::png_file(test::flat_pixels(3, 3, {0})));
  std::filesystem::create_symlink("nowhere.png", folder / "in/2.png");
  std::filesystem::create_directory_symlink(folder.path(), folder / "in/deep/circle");
  const Outcome outcome = read({"in"}, gray(1));
  EXPECT_THAT(outcome.names, ElementsAre("in/deep/1.png"));
  EXPECT_THAT(outcome.skipped, ElementsAre("in/2.png: no such file"));
}

TEST_F(UnlabelledSamples, KeepTheOrderOfTheFilesWhateverTheirKind) {
  folder.write("1.png", test::png_file(test::flat_pixels(2, 2, {1})));
  folder.write("2.npy", test::npy_file("|u1", "(2, 2, 2)", std::string("\2\2\2\2\3\3\3\3", 8)));
  folder.write("3.png", test::png_file(test::flat_pixels(2, 2, {4})));
  folder.write("4.idx", std::string("\0\0\x08\x03\0\0\0\1\0\0\0\2\0\0\0\2\5\5\5\5", 20));
  const std::string header = R"({"x":{"dtype":"U8","shape":[1,1,2,2],"data_offsets":[0,4]}})";
  folder.write("5.st", test::safetensors_file(header, "\6\6\6\6"));
  const Outcome outcome = read({"1.png", "2.npy", "3.png", "4.idx", "5.st"}, gray(2));
  EXPECT_THAT(outcome.skipped, ElementsAre());
  EXPECT_THAT(outcome.names, ElementsAre("1.png", "2.npy[0]", "2.npy[1]", "3.png", "4.idx[0]", "5.st[0]"));
  for (std::size_t i = 0; i < outcome.values.size(); ++i) {
    const std::size_t sample = i / 4 + 1;
    EXPECT_EQ(outcome.values[i], static_cast<float>(sample)) << i;
  }
}

TEST_F(UnlabelledSamples, OfAnotherShapeAreSkipped) {
  folder.write("x.npy", test::npy_file("<f4", "(1, 3)", test::bytes_of<float>({1, 2, 3})));
  folder.write("t.csv", "a,b\n1,2\n");
  const Outcome outcome = read({"x.npy", "t.csv"}, gray(2));
  ASSERT_EQ(outcome.skipped.size(), 2u);
  EXPECT_THAT(outcome.skipped[0],
              HasSubstr("its samples are [3], those that the network was trained on [1, 2, 2]"));
  EXPECT_THAT(outcome.skipped[1], HasSubstr("the network takes pictures"));
}

TEST_F(UnlabelledSamples, OfPicturesNeedOneOrThreeChannelsOfBytes) {
  folder.write("a.png", test::png_file(test::flat_pixels(40, 40, {40})));
  for (const std::int64_t channels : {2, 4}) {
    SampleFormat format = gray(40);
    format.shape.front() = channels;
    const Outcome outcome = read({"a.png"}, format);
    EXPECT_THAT(outcome.names, ElementsAre());
    EXPECT_THAT(outcome.skipped,
                ElementsAre(HasSubstr("a picture has 1 or 3 channels, not " + std::to_string(channels))));
  }
  SampleFormat floats = gray(40);
  floats.bytes = false;
  EXPECT_THAT(read({"a.png"}, floats).skipped,
              ElementsAre(HasSubstr("of float32, whose scale a picture does not have")));
}

TEST_F(UnlabelledSamples, NeverChangeTheirScale) {
  folder.write("u.npy", test::npy_file("|u1", "(1, 2, 2)", std::string("\2\2\2\2", 4)));
  folder.write("f.npy", test::npy_file("<f4", "(1, 2, 2)", test::bytes_of<float>({1, 2, 3, 4})));
  SampleFormat format = gray(2);
  const Outcome bytes = read({"u.npy", "f.npy"}, format);
  EXPECT_THAT(bytes.names, ElementsAre("u.npy[0]"));
  EXPECT_THAT(bytes.skipped, ElementsAre(HasSubstr("f.npy: holds numbers that are not uint8")));
  format.bytes = false;
  const Outcome floats = read({"u.npy", "f.npy"}, format);
  EXPECT_THAT(floats.names, ElementsAre("f.npy[0]"));
  EXPECT_THAT(floats.skipped, ElementsAre(HasSubstr("u.npy: holds bytes (uint8)")));
}

TEST_F(UnlabelledSamples, OfTablesMayBeUtf8OrLatin1) {
  folder.write("utf8.csv",
               "gr\xc3\xb6\xc3\x9f"
               "e\n1\n");
  folder.write("latin1.csv",
               "gr\xf6\xdf"
               "e\n2\n");
  SampleFormat format;
  format.shape = {1};
  format.columns = {{"größe", {}, false}};
  const Outcome outcome = read({"utf8.csv", "latin1.csv"}, format);
  EXPECT_THAT(outcome.skipped, ElementsAre());
  EXPECT_THAT(outcome.values, ElementsAre(1, 2));
}

TEST_F(UnlabelledSamples, OfTablesAreNamedByTheirLines) {
  folder.write("test.csv", "colour,size\nred,1\n?,NA\ngreen,5\nblue,2\n");
  folder.write("none.csv", "colour,size\ngreen,5\n");
  SampleFormat format;
  format.shape = {3};
  format.columns = {{"size", {}, false}, {"colour", {"blue", "red"}, true}};
  format.fill_values = {3, 0.25f, 0.75f};
  const Outcome outcome = read({"test.csv", "none.csv"}, format);
  EXPECT_THAT(outcome.names, ElementsAre("test.csv:2", "test.csv:3", "test.csv:5"));
  EXPECT_THAT(outcome.values, ElementsAre(1, 0, 1, 3, 0.25f, 0.75f, 2, 1, 0));
  EXPECT_THAT(outcome.skipped, ElementsAre(HasSubstr("test.csv:4: column \"colour\": \"green\" was not"),
                                           HasSubstr("none.csv:2: column")));
}

TEST_F(UnlabelledSamples, OfManyPicturesComeInPieces) {
  const std::string file = test::png_file(test::flat_pixels(1, 1, {9}));
  folder.write("a.png", file);
  const Outcome outcome = read(std::vector<std::string>(1100, "a.png"), gray(1));
  EXPECT_EQ(outcome.names.size(), 1100u);
  EXPECT_EQ(outcome.calls, 3u);
}

// What a run records of its samples.

using Json = nlohmann::ordered_json;

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
