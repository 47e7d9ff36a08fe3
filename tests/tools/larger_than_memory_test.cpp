// A folder of pictures that does not fit into the memory that the program may use trains from its cache.

#include "tests/support/array_files.h"
#include "tests/support/image_files.h"
#include "tests/support/program_folder.h"

#include "tests/support/test.h"

namespace sweep::testing::larger_than_memory_test {

using nlohmann::json;

constexpr int kPictures = 10'000;
constexpr int kDecodedSide = 256;  // pixels of a decoded picture: 655 MB together
// At most 200 MB of memory that is not that of a file.
const std::string kLimited = "ulimit -d 200000; ";

class LargerThanMemory : public ProgramFolder {
 protected:
  LargerThanMemory() {
    // Few different files: writing them takes no time, and decoding makes all of them large.
    std::vector<std::string> files;
    for (unsigned i = 0; i < 16; ++i) {
      files.push_back(test::png_file(test::make_pixels(8, 8, 1, [i](unsigned y, unsigned x, unsigned) {
        return (i % 2 == 0 ? 40u : 160u) + (i * 2654435761u ^ y * 40503u ^ x * 69069u) % 64;
      })));
    }
    for (unsigned i = 0; i < kPictures; ++i) {
      folder_.write(std::string("pictures/") + (i % 2 == 0 ? "dark/" : "light/") + std::to_string(i) + ".png",
                    files[i % files.size()]);
    }
    folder_.write("s.json", R"({
      "dataset": {"name": "pictures", "path": "pictures", "resize": [256, 256], "grayscale": true,
                  "validation": 1000, "test": 500, "normalize": "train"},
      "network": {"layers": [{"type": "avg_pool2d", "kernel_size": 64}, {"type": "flatten"},
                             {"type": "linear", "out_features": 2}]},
      "epochs": 2, "batch_size": 20, "device": "cpu", "seed": 1, "params": {"num_workers": [0, 2]}})");
    std::this_thread::sleep_for(std::chrono::milliseconds(80));  // until the folder counts as not changing
  }

  // Starts the sweep with little memory, or as much as it wants.
  void train(const std::string& logdir, bool limited) const {
    run_shell((limited ? kLimited : "") + "exec $SWEEP s.json --logdir " + logdir + " --threads 2");
  }

  json epochs(const std::string& logdir, std::size_t run) const {
    json all = read_json(logdir + "/s/results.json").at("runs").at(run).at("epochs");
    for (json& epoch : all) {
      for (const char* time : {"epoch_seconds", "run_seconds", "images_per_second", "wait_seconds"})
        epoch.erase(time);
    }
    return all;
  }
};

TEST_F(LargerThanMemory, TrainsToTheBitsOfASetInMemory) {
  train("first", true);
  train("second", true);
  const test::Environment no_cache("SWEEP_CACHE_SIZE", "0");
  // Pictures without a cache are decoded to memory that processes share, which the limit does not count.
  const std::string size = std::to_string(std::size_t{kPictures} * kDecodedSide * kDecodedSide);
  const auto array = folder_.write("x.npy", test::npy_file("|u1", "(" + size + ",)", ""));
  std::filesystem::resize_file(array, std::filesystem::file_size(array) + std::stoull(size));
  EXPECT_THAT(run_shell(kLimited + "exec $SWEEP data x.npy", 1).err, HasSubstr("memory"))
      << "the limit is one";
  train("resident", false);
  const json expected = epochs("resident", 0);
  ASSERT_EQ(expected.size(), 2u);
  EXPECT_GT(expected[1].at("validation_accuracy").get<double>(), 0.9);
  for (const std::size_t run : {0u, 1u}) {
    EXPECT_EQ(epochs("resident", run), expected);
    EXPECT_EQ(epochs("first", run), expected);
    EXPECT_EQ(epochs("second", run), expected);
  }
}

}  // namespace sweep::testing::larger_than_memory_test
