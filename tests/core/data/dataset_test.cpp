// Data sets in files: where they are found, and what is said of them.
#include "core/data/dataset.h"

#include "core/base/file.h"
#include "core/data/dataset_summary.h"
#include "tests/support/data_files.h"
#include "tests/support/dataset_rows.h"
#include "tests/support/fashion_mnist.h"

namespace sweep::dataset_test {

// A data set of 3x3 pixels in 3 classes: 20 samples.
void write_set(const fs::path& directory) {
  test::write_idx_set(
      directory, "train", 20, 3, [](auto...) { return 0x40; }, [](unsigned i) { return i % 3; });
}

class LoadDataset : public testing::Test {
 protected:
  LoadDataset() { write_set(directory_.path()); }
  DatasetSpec spec() const { return {.name = "mine", .path = directory_.path()}; }
  std::string file(const char* name) const { return (directory_.path() / name).string(); }

  test::TemporaryDirectory directory_;
};

// For a network that was trained on the table `trained`, the table `now`.
Dataset for_trained(const std::string& trained, const std::string& now, DatasetSpec spec = {}) {
  test::TemporaryDirectory folder;
  folder.write("t.csv", trained);
  spec.path = folder.path() / "t.csv";
  const Dataset first = load_dataset(spec);
  folder.write("t.csv", now);
  return load_dataset_for(first, spec);
}

// A row of trained_tables.json: the table of the training, another one, and what that gives.
TEST(TrainedDataset, IsWhatItsRowSays) {
  const auto rows = nlohmann::json::parse(read_file(SWEEP_TEST_DATA "/trained_tables.json"));
  ASSERT_GE(rows.size(), 5u);
  for (const auto& row : rows)
    test::expect_row(
        row, [&] { return for_trained(row.at("trained"), row.at("text"), test::dataset_spec_of(row)); });
}

TEST_F(LoadDataset, RefusesLabelsThatTheNetworkDoesNotKnow) {
  Dataset trained = load_dataset(spec());
  trained.class_names.pop_back();
  EXPECT_THAT(message_of<DataError>([&] { load_dataset_for(trained, spec()); }),
              HasSubstr("label 2 of sample 2 (from 0) is out of range: 0 to 1"));
  trained = load_dataset(spec());
  trained.shape = {1, 3, 2};
  EXPECT_THAT(message_of<DataError>([&] { load_dataset_for(trained, spec()); }),
              HasSubstr("its samples are [1, 3, 3], those that the network was trained on [1, 3, 2]"));
}

TEST_F(LoadDataset, LooksIntoSweepDataThenIntoTheCache) {
  const Environment cache("XDG_CACHE_HOME", (directory_.path() / "cache").c_str());
  const Environment data("SWEEP_DATA", (directory_.path() / "data").c_str());
  write_set(directory_.path() / "cache" / "sweep" / "mine");
  EXPECT_EQ(load_dataset({.name = "mine"}).files[0].path, file("cache/sweep/mine/train-images-idx3-ubyte"));
  write_set(directory_.path() / "data" / "mine");
  EXPECT_EQ(load_dataset({.name = "mine"}).files[0].path, file("data/mine/train-images-idx3-ubyte"));
}

TEST_F(LoadDataset, ListsEveryPlaceItLookedIn) {
  const Environment cache("XDG_CACHE_HOME", nullptr);
  const Environment home("HOME", "/home/somebody");
  {
    const Environment data("SWEEP_DATA", nullptr);
    EXPECT_EQ(message_of<DataError>([] { load_dataset({.name = "fashion-mnits"}); }),
              "data set \"fashion-mnits\" not found. Looked in:\n"
              "  $SWEEP_DATA/fashion-mnits: SWEEP_DATA is not set\n"
              "  /usr/share/datasets/fashion-mnits: no such directory\n"
              "  /usr/local/share/datasets/fashion-mnits: no such directory\n"
              "  /home/somebody/.cache/sweep/fashion-mnits: no such directory\n"
              "Did you mean \"fashion-mnist\"? Otherwise put its files into one of these directories, or set "
              "SWEEP_DATA to the "
              "directory that holds \"fashion-mnits\", or give the data set a \"path\".");
  }
  fs::create_symlink("loop", directory_.path() / "loop");
  {
    const Environment data("SWEEP_DATA", file("loop")), typed("SWEEP_TYPED_AS", "tools/run");
    EXPECT_THAT(message_of<DataError>([] { load_dataset({.name = "mnist"}); }),
                AllOf(HasSubstr("loop/mnist: cannot open: Too many levels of symbolic links\n"),
                      HasSubstr("To get it, run `tools/run data get mnist`")));
  }
  const Environment data("SWEEP_DATA", directory_.path().c_str());
  fs::create_directory(directory_.path() / "mnist");
  EXPECT_THAT(message_of<DataError>([] { load_dataset({.name = "mnist"}); }),
              AllOf(HasSubstr(file("mnist") +
                              ": not a folder with train-images-idx3-ubyte or train-images-idx3-ubyte.gz"),
                    HasSubstr("\nTo get it, run `sweep data get mnist`, or train with --yes; or put its "
                              "files into one of these"),
                    EndsWith("Its files, plain or compressed by gzip, with the SHA-256 of their content:\n"
                             "  train-images-idx3-ubyte  "
                             "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db\n"
                             "  train-labels-idx1-ubyte  "
                             "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5\n"
                             "  t10k-images-idx3-ubyte   "
                             "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7\n"
                             "  t10k-labels-idx1-ubyte   "
                             "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2")));
  EXPECT_THAT(
      message_of<DataError>([] { load_dataset({.name = "cifar100"}); }),
      EndsWith("Its files, plain or compressed by gzip:\n"
               "  train.bin\n"
               "  test.bin\n"
               "They are in https://www.cs.toronto.edu/~kriz/cifar-100-binary.tar.gz, whose SHA-256 is "
               "58a81ae192c23a4be8b1804d68e518ed807d710a4eb253b1f2a199162a40d8ec"));
}

TEST_F(LoadDataset, DoesNotLeaveItsDirectoriesForAName) {
  for (const char* name : {"", ".", "..", "../mine", "/etc", "a/b"}) {
    EXPECT_THAT(message_of<ConfigError>([&] { load_dataset({.name = name}); }),
                HasSubstr("must be a plain name"))
        << name;
  }
}

TEST(DatasetSummary, CountsTheClassesOfEachPartByItself) {
  const auto set = std::make_shared<TensorDataset>(
      TensorDataset{{1}, std::vector<std::uint8_t>(6), std::vector{2, 0, 2, 2, 0, 2}});
  Dataset dataset;
  dataset.class_names = {"a", "b", "c"};
  dataset.train = {set, 0, 3};
  dataset.test = {set, 4, 2};
  const auto parts = summarize_parts(dataset);
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(parts[0].name, "train");
  EXPECT_THAT(parts[0].class_counts, ElementsAre(1, 0, 2));
  EXPECT_EQ(parts[1].name, "test");
  EXPECT_THAT(parts[1].class_counts, ElementsAre(1, 0, 1));
  EXPECT_EQ(memory_bytes(dataset), 6 + 6 * 4) << "the parts share one set";
}

TEST(DatasetSummary, MeasuresEachNumberOfEachPart) {
  const auto set = std::make_shared<TensorDataset>(
      TensorDataset{{1}, std::vector<float>(3), std::vector<float>{100, 100, 1, 10, 3, 10}});
  Dataset dataset;
  dataset.target_names = {"p", "q"};
  dataset.train = {set, 1, 2};
  const auto parts = summarize_parts(dataset);
  ASSERT_EQ(parts.size(), 1u);
  EXPECT_THAT(parts[0].targets.mean, ElementsAre(2.0, 10.0));
  EXPECT_THAT(parts[0].targets.deviation, ElementsAre(1.0, 0.0));
  EXPECT_THAT(parts[0].class_counts, IsEmpty());
}

TEST(CacheFolder, CleaningRemovesItsFilesAndNoOthers) {
  const test::TemporaryDirectory folder;
  for (const char* name : {"a.samples", "b.samples.12.tmp", "mine.txt", "mine.tmp"})
    folder.write(name, std::string(20, 'x'));
  const CleanedCache cleaned = clean_cache(folder.path());
  EXPECT_EQ(cleaned.files, 2u);
  EXPECT_EQ(cleaned.bytes, 40u);
  EXPECT_FALSE(fs::exists(folder / "a.samples"));
  EXPECT_TRUE(fs::exists(folder / "mine.txt") && fs::exists(folder / "mine.tmp"));
  EXPECT_EQ(clean_cache(folder / "nowhere").files, 0u);
  EXPECT_THAT(message_of<IoError>([&] { clean_cache(folder / "mine.txt"); }),
              EndsWith("mine.txt: cannot read: Not a directory"));
}

TEST(DecodedCache, IsInTheUsersCacheUnlessItIsSwitchedOff) {
  const Environment cache("XDG_CACHE_HOME", "/c");
  const Environment unset("SWEEP_CACHE_SIZE", nullptr);
  EXPECT_EQ(decoded_cache(), "/c/sweep/decoded");
  {
    const Environment relative("XDG_CACHE_HOME", "c"), home("HOME", "/home/me");
    EXPECT_EQ(decoded_cache(), "/home/me/.cache/sweep/decoded") << "a relative path counts as none";
  }
  const Environment off("SWEEP_CACHE_SIZE", "0");
  EXPECT_EQ(decoded_cache(), "");
}

TEST(FashionMnist, IsAsItsReadmeSays) {
  SKIP_WITHOUT_FASHION_MNIST();
  const Dataset set = load_dataset({.name = "fashion-mnist", .validation = std::size_t{10000}});
  EXPECT_THAT(set.shape, ElementsAre(1, 28, 28));
  EXPECT_EQ(set.train.count, 50000u);
  EXPECT_EQ(set.validation.first, 50000u);
  EXPECT_EQ(set.validation.count, 10000u);
  EXPECT_EQ(set.test.count, 10000u);
  ASSERT_EQ(set.class_names.size(), 10u);
  EXPECT_EQ(set.class_names[0], "T-shirt/top");
  EXPECT_EQ(set.class_names[9], "Ankle boot");
  // Each class has 6,000 training and 1,000 test samples. The first training sample is an ankle boot.
  std::array<int, 10> train{}, test{};
  for (const std::int32_t label : set.train.set->labels()) ++train[static_cast<std::size_t>(label)];
  for (const std::int32_t label : set.test.set->labels()) ++test[static_cast<std::size_t>(label)];
  EXPECT_THAT(train, Each(6000));
  EXPECT_THAT(test, Each(1000));
  EXPECT_EQ(set.train.set->labels()[0], 9);
  // Mean 0.2860 of the pixels / 255, as the data set's users know it for normalisation.
  const auto pixels = set.train.set->pixels();
  const double mean =
      std::accumulate(pixels.begin(), pixels.end(), 0.0) / static_cast<double>(pixels.size()) / 255;
  EXPECT_NEAR(mean, 0.2860, 0.00005);
}

}  // namespace sweep::dataset_test
