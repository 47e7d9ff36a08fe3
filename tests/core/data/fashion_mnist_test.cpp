// The real Fashion-MNIST, where it is installed.

#include "core/data/data_loader.h"
#include "core/data/dataset.h"
#include "tests/support/idx_files.h"

#include "tests/support/test.h"

namespace sweep::fashion_mnist_test {

constexpr char kInstalled[] = "/usr/share/datasets/fashion-mnist";

class FashionMnist : public testing::Test {
 protected:
  void SetUp() override {
    if (!fs::exists(fs::path(kInstalled) / "train-images-idx3-ubyte.gz")) {
      GTEST_SKIP() << "Fashion-MNIST is not installed; apt-get install dataset-fashion-mnist";
    }
  }
};

TEST_F(FashionMnist, IsAsItsReadmeSays) {
  const Dataset set =
      load_dataset({.name = "fashion-mnist", .path = kInstalled, .validation = std::size_t{10000}});
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

TEST_F(FashionMnist, WithOneWrongPixelIsNotFashionMnist) {
  const test::TemporaryDirectory directory;
  for (const auto& entry : fs::directory_iterator(kInstalled))
    fs::create_symlink(entry, directory.path() / entry.path().filename());
  const Dataset right = load_dataset({.name = "fashion-mnist", .path = directory.path()});
  std::string pixels(right.test.set->pixels().begin(), right.test.set->pixels().end());
  pixels[5'000'000] = static_cast<char>(pixels[5'000'000] ^ 1);
  fs::remove(directory.path() / "t10k-images-idx3-ubyte.gz");
  directory.write("t10k-images-idx3-ubyte", test::idx({10000, 28, 28}, pixels));
  EXPECT_THAT(
      test::message_of<DataError>([&] { load_dataset({.name = "fashion-mnist", .path = directory.path()}); }),
      HasSubstr("t10k-images-idx3-ubyte: well-formed, but not a file of \"fashion-mnist\""));
}

}  // namespace sweep::fashion_mnist_test
