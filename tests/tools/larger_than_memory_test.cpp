// A folder of pictures that does not fit into the memory that the program may use trains from its cache.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>

#include "core/base/file.h"
#include "tests/support/array_files.h"
#include "tests/support/environment.h"
#include "tests/support/image_files.h"
#include "tests/support/program.h"
#include "tests/support/sweep_folder.h"

namespace sweep::testing {
namespace {

using nlohmann::json;

constexpr int kPictures = 10'000;
constexpr int kDecodedSide = 256;  // pixels of a decoded picture: 655 MB together
constexpr int kLimitKb = 200'000;  // of memory that is not that of a file

class LargerThanMemory : public ::testing::Test {
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

  // Starts the sweep with at most kLimitKb of memory, or as much as it wants.
  Finished train(const std::string& logdir, bool limited) const {
    const std::string limit = limited ? "ulimit -d " + std::to_string(kLimitKb) + "; " : "";
    return run_program(
        "/bin/sh",
        {"-c", limit + "exec \"$0\" s.json --logdir " + logdir + " --threads 2", program_path(SWEEP_PROGRAM)},
        folder_.path());
  }

  json epochs(const std::string& logdir, std::size_t run) const {
    json all =
        json::parse(read_file(folder_.path() / logdir / "s/results.json")).at("runs").at(run).at("epochs");
    for (json& epoch : all) {
      for (const char* time : {"epoch_seconds", "run_seconds", "images_per_second", "wait_seconds"})
        epoch.erase(time);
    }
    return all;
  }

  SweepFolder folder_;
  const test::Environment cache_{"XDG_CACHE_HOME", (folder_.path() / "cache").string()};
};

TEST_F(LargerThanMemory, TrainsToTheBitsOfASetInMemory) {
  const Finished decoded = train("first", true), kept = train("second", true);
  ASSERT_EQ(decoded.code, 0) << decoded.err;
  ASSERT_EQ(kept.code, 0) << kept.err;
  const test::Environment no_cache("SWEEP_CACHE_SIZE", "0");
  // Pictures without a cache are decoded to memory that processes share, which the limit does not count.
  const std::string size = std::to_string(std::size_t{kPictures} * kDecodedSide * kDecodedSide);
  const auto array = folder_.write("x.npy", test::npy_file("|u1", "(" + size + ",)", ""));
  std::filesystem::resize_file(array, std::filesystem::file_size(array) + std::stoull(size));
  const Finished in_memory =
      run_program("/bin/sh",
                  {"-c", "ulimit -d " + std::to_string(kLimitKb) + "; exec \"$0\" data x.npy",
                   program_path(SWEEP_PROGRAM)},
                  folder_.path());
  EXPECT_THAT(in_memory.err, ::testing::HasSubstr("memory")) << "the limit is one";
  ASSERT_EQ(train("resident", false).code, 0);
  const json expected = epochs("resident", 0);
  ASSERT_EQ(expected.size(), 2u);
  EXPECT_GT(expected[1].at("validation_accuracy").get<double>(), 0.9);
  for (const std::size_t run : {0u, 1u}) {
    EXPECT_EQ(epochs("resident", run), expected);
    EXPECT_EQ(epochs("first", run), expected);
    EXPECT_EQ(epochs("second", run), expected);
  }
}

}  // namespace
}  // namespace sweep::testing
