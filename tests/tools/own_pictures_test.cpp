// The program trains on pictures that people bring. CIFAR's batches: shipped_sweeps_test.cpp.

#include "tests/support/generated_pictures.h"
#include "tests/support/image_files.h"
#include "tests/support/program_folder.h"

namespace sweep::testing::own_pictures_test {

constexpr unsigned kPictureSide = 16;  // pixels

// Colour tells the classes apart, not brightness: class 0 is red, class 1 is blue.
test::Pixels picture(unsigned label, unsigned sample) {
  return test::make_pixels(kPictureSide, kPictureSide, 3, [=](unsigned y, unsigned x, unsigned c) {
    return test::noise(sample, y, x, c) + (c == 2 * label ? 120 : 20);
  });
}

class OwnPictures : public ProgramFolder {
 protected:
  // Trains on the folder of flowers.
  Finished train_on_flowers(const std::string& keys,
                            const std::string& settings = R"("epochs": 8, "batch_size": 10)") const {
    return train("s", R"({"name": "flowers", "path": "flowers")" + keys + "}",
                 R"({"type": "conv2d", "out_channels": 8, "kernel_size": 3}, {"type": "relu"},
                    {"type": "max_pool2d", "kernel_size": 2}, {"type": "flatten"},
                    {"type": "linear", "out_features": 10})",
                 settings);
  }

  // 40 pictures of each class, JPEG and PNG in turn.
  OwnPictures() {
    for (unsigned i = 0; i < 80; ++i) {
      const unsigned label = i / 40;
      const std::string file =
          i % 2 == 0 ? test::jpeg_file(picture(label, i)) : test::png_file(picture(label, i));
      folder_.write((label == 0 ? "flowers/poppy/" : "flowers/cornflower/") + std::to_string(i) +
                        (i % 2 == 0 ? ".jpg" : ".png"),
                    file);
    }
  }
};

TEST_F(OwnPictures, AFolderInColourIsLearnt) {
  folder_.write("flowers/poppy/broken.jpg", test::jpeg_file(picture(0, 1)).substr(0, 200));
  const Finished finished = train_on_flowers(R"(, "validation": 0.2, "test": 10)");
  EXPECT_THAT(finished.err, HasSubstr("data set \"flowers\": 1 file was skipped: "));
  EXPECT_THAT(finished.err, HasSubstr("broken.jpg ("));
  const json trained = record("s/run");
  EXPECT_GT(trained.at("metrics").at("validation_accuracy"), 0.9);
  EXPECT_GT(trained.at("metrics").at("test_accuracy"), 0.9);
  const json& data = trained.at("provenance").at("dataset");
  EXPECT_EQ(data.at("train"), 54);
  EXPECT_EQ(data.at("validation"), 16);
  EXPECT_EQ(data.at("test"), 10);
  ASSERT_EQ(data.at("files").size(), 1u) << "one digest over all pictures";
  EXPECT_EQ(data.at("files")[0].at("sha256").get<std::string>().size(), 64u);
  ASSERT_EQ(data.at("skipped").size(), 1u);
  EXPECT_NE(data.at("skipped")[0].at("reason"), "");
}

TEST_F(OwnPictures, AreDecodedOnce) {
  std::this_thread::sleep_for(std::chrono::milliseconds(80));  // until the folder counts as not changing
  const std::string keys = R"(, "validation": 0.2)";
  train_on_flowers(keys);
  const json first = record("s/run");
  std::filesystem::remove_all(path("runs"));
  train_on_flowers(keys);
  EXPECT_EQ(record("s/run").at("provenance").at("dataset").at("files"),
            first.at("provenance").at("dataset").at("files"));
  for (const char* key : {"loss", "validation_loss"})
    EXPECT_EQ(record("s/run").at("metrics").at(key), first.at("metrics").at(key));
  {
    const test::Environment off("SWEEP_CACHE_SIZE", "0");  // is no reason to leave what is there
    EXPECT_THAT(run({"data", "clean"}).out,
                ::testing::ContainsRegex("^removed 1 file with [0-9]+\\.[0-9] KiB of decoded images from "));
  }
  EXPECT_THAT(run({"data", "clean"}).out, StartsWith("removed 0 files with 0 B of"));

  const test::Environment full("XDG_CACHE_HOME", "/proc");
  std::filesystem::remove_all(path("runs"));
  EXPECT_THAT(train_on_flowers(keys).err,
              HasSubstr("the decoded images are not kept for the next start: /proc/sweep/decoded: "));
}

TEST_F(OwnPictures, TensorBoardShowsThemAugmented) {
  train_on_flowers("", R"("epochs": 1, "batch_size": 10,
      "params": {"dataset.augment": [[], ["horizontal_flip", {"cutout": {"size": 4}}]]})");
  const json runs = results("s");
  const auto first_image = [&](std::size_t run) {
    return first_picture("s/" + runs.at(run).at("name").get<std::string>());
  };
  EXPECT_GT(first_image(0).size(), 100u);
  EXPECT_NE(first_image(0), first_image(1));
}

// A folder of pictures that does not fit into the memory that the program may use trains from its cache.

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

}  // namespace sweep::testing::own_pictures_test
