// The program trains on pictures that people bring: folders of images and CIFAR's batches.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>

#include "core/base/file.h"
#include "tests/support/array_files.h"
#include "tests/support/environment.h"
#include "tests/support/generated_pictures.h"
#include "tests/support/image_files.h"
#include "tests/support/program.h"
#include "tests/support/sweep_folder.h"

namespace sweep::testing {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

constexpr unsigned kPictureSide = 16;  // pixels

// Colour tells the classes apart, not brightness: class 0 is red, class 1 is blue.
test::Pixels picture(unsigned label, unsigned sample) {
  return test::make_pixels(kPictureSide, kPictureSide, 3, [=](unsigned y, unsigned x, unsigned c) {
    return test::noise(sample, y, x, c) + (c == 2 * label ? 120 : 20);
  });
}

class OwnPictures : public ::testing::Test {
 protected:
  OwnPictures() {
    folder_.write("cnn.json", R"({"layers": [
      {"type": "conv2d", "out_channels": 8, "kernel_size": 3}, {"type": "relu"}, {"type": "max_pool2d", "kernel_size": 2},
      {"type": "flatten"}, {"type": "linear", "out_features": 10}]})");
  }

  // Runs a sweep of one run on `dataset`.
  Finished train(const std::string& dataset) const {
    folder_.write("s.json",
                  "{\"dataset\": " + dataset +
                      R"(, "network": "cnn.json", "optimizer": "adam", "epochs": 8, "batch_size": 10,
                                    "device": "cpu", "seed": 1})");
    return run_program({"s.json", "--logdir", "runs"}, folder_.path());
  }

  json run_record() const {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_.path() / "runs")) {
      if (entry.path().filename() == "run.json") return json::parse(read_file(entry.path()));
    }
    return {};
  }

  double accuracy(const char* part) const { return run_record().at("metrics").at(part).get<double>(); }

  // 40 pictures of each class, JPEG and PNG in turn.
  void write_pictures(const std::string& name) const {
    for (unsigned i = 0; i < 80; ++i) {
      const unsigned label = i / 40;
      const std::string file =
          i % 2 == 0 ? test::jpeg_file(picture(label, i)) : test::png_file(picture(label, i));
      folder_.write(name + (label == 0 ? "/poppy/" : "/cornflower/") + std::to_string(i) +
                        (i % 2 == 0 ? ".jpg" : ".png"),
                    file);
    }
  }

  void expect_refused(const std::string& dataset, const std::string& message) const {
    const Finished finished = train(dataset);
    EXPECT_EQ(finished.code, 2) << finished.err;
    EXPECT_THAT(finished.err, HasSubstr(message));
    EXPECT_EQ(std::count(finished.err.begin(), finished.err.end(), '\n'), 1) << finished.err;
    EXPECT_FALSE(std::filesystem::exists(folder_.path() / "runs"));
  }

  SweepFolder folder_;
  const test::Environment cache_{"XDG_CACHE_HOME", (folder_.path() / "cache").string()};
};

TEST_F(OwnPictures, AFolderInColourIsLearnt) {
  write_pictures("flowers");
  folder_.write("flowers/poppy/broken.jpg", test::jpeg_file(picture(0, 1)).substr(0, 200));
  const Finished finished = train(R"({"name": "flowers", "path": "flowers", "validation": 0.2, "test": 10})");
  ASSERT_EQ(finished.code, 0) << finished.err;
  EXPECT_GT(accuracy("validation_accuracy"), 0.9);
  EXPECT_GT(accuracy("test_accuracy"), 0.9);
  EXPECT_THAT(finished.err, HasSubstr("data set \"flowers\": 1 file was skipped: "));
  EXPECT_THAT(finished.err, HasSubstr("broken.jpg ("));
  const json record = run_record();
  const json& data = record.at("provenance").at("dataset");
  EXPECT_EQ(data.at("train"), 54);
  EXPECT_EQ(data.at("validation"), 16);
  EXPECT_EQ(data.at("test"), 10);
  ASSERT_EQ(data.at("files").size(), 1u) << "one digest over all pictures";
  EXPECT_EQ(data.at("files")[0].at("sha256").get<std::string>().size(), 64u);
  ASSERT_EQ(data.at("skipped").size(), 1u);
  EXPECT_NE(data.at("skipped")[0].at("reason"), "");
}

TEST_F(OwnPictures, AFolderIsResizedAndGrayIfAskedFor) {
  write_pictures("flowers");
  const Finished finished = train(
      R"({"name": "flowers", "path": "flowers", "validation": 0.2, "resize": [12, 10], "grayscale": true})");
  ASSERT_EQ(finished.code, 0) << finished.err;
  const json dataset = run_record().at("config").at("dataset");
  EXPECT_EQ(dataset.at("resize"), json({12, 10}));
  EXPECT_EQ(dataset.at("grayscale"), true);
}

TEST_F(OwnPictures, AreDecodedOnce) {
  write_pictures("flowers");
  std::this_thread::sleep_for(std::chrono::milliseconds(80));  // until the folder counts as not changing
  const std::string dataset = R"({"name": "flowers", "path": "flowers", "validation": 0.2})";
  ASSERT_EQ(train(dataset).code, 0);
  const json first = run_record();
  std::filesystem::remove_all(folder_.path() / "runs");
  ASSERT_EQ(train(dataset).code, 0);
  EXPECT_EQ(run_record().at("provenance").at("dataset").at("files"),
            first.at("provenance").at("dataset").at("files"));
  for (const char* key : {"loss", "validation_loss"})
    EXPECT_EQ(run_record().at("metrics").at(key), first.at("metrics").at(key));
  EXPECT_THAT(run_program({"data", "clean"}, folder_.path()).out,
              ::testing::StartsWith("removed 1 file with 0.1 MB of decoded images from "));
  EXPECT_THAT(run_program({"data", "clean"}, folder_.path()).out,
              ::testing::StartsWith("removed 0 files with 0.0 MB"));

  const test::Environment full("XDG_CACHE_HOME", "/proc");
  std::filesystem::remove_all(folder_.path() / "runs");
  const Finished finished = train(dataset);
  EXPECT_EQ(finished.code, 0);
  EXPECT_THAT(finished.err,
              HasSubstr("the decoded images are not kept for the next start: /proc/sweep/decoded: "));
}

TEST_F(OwnPictures, AugmentationIsPartOfARunAndNotOfHowItIsComputed) {
  write_pictures("flowers");
  folder_.write(
      "s.json",
      R"({"dataset": {"name": "flowers", "path": "flowers", "validation": 0.2}, "network": "cnn.json",
      "optimizer": "adam", "epochs": 2, "batch_size": 10, "device": "cpu", "seed": 1,
      "params": {"dataset.augment": [[], [{"random_crop": {"padding": 3}}, "horizontal_flip", {"cutout": {"size": 4}}]],
                 "num_workers": [0, 2]}})");
  const Finished finished = run_program({"s.json", "--logdir", "runs"}, folder_.path());
  ASSERT_EQ(finished.code, 0) << finished.err;
  const json results = json::parse(read_file(folder_.path() / "runs/s/results.json")).at("runs");
  ASSERT_EQ(results.size(), 4u);
  const auto loss = [&](std::size_t run) { return results[run].at("epochs")[1].at("loss"); };
  EXPECT_EQ(loss(0), loss(1));
  EXPECT_EQ(loss(2), loss(3)) << "workers change nothing";
  EXPECT_NE(loss(0), loss(2));
  // The first batches that TensorBoard shows differ as well.
  const auto first_image = [&](std::size_t run) {
    const auto directory = folder_.path() / "runs/s" / results[run].at("name").get<std::string>();
    for (const auto& file : std::filesystem::directory_iterator(directory)) {
      if (!file.path().filename().string().starts_with("events.out")) continue;
      const std::string events = read_file(file.path());
      const std::size_t begin = events.find("\x89PNG");
      return events.substr(begin, events.find("IEND", begin) - begin);
    }
    return std::string();
  };
  EXPECT_GT(first_image(0).size(), 100u);
  EXPECT_EQ(first_image(0), first_image(1));
  EXPECT_NE(first_image(0), first_image(2));
  // A finished run with another augmentation is in the way.
  const auto train_padded = [&](int padding) {
    return train(R"({"name": "flowers", "path": "flowers", "augment": [{"random_crop": {"padding": )" +
                 std::to_string(padding) + "}}]}");
  };
  std::filesystem::remove_all(folder_.path() / "runs");
  EXPECT_EQ(train_padded(2).code, 0);
  const Finished other = train_padded(3);
  EXPECT_EQ(other.code, 2);
  EXPECT_THAT(other.err, HasSubstr("dataset.augment[0].random_crop.padding: 2 -> 3"));
}

TEST_F(OwnPictures, CifarBatchesAreLearnt) {
  test::write_cifar10(
      [&](const std::string& name, const std::string& bytes) { folder_.write("cifar/" + name, bytes); }, 60);
  const Finished finished = train(R"({"name": "cifar10", "path": "cifar", "validation": 40})");
  ASSERT_EQ(finished.code, 0) << finished.err;
  EXPECT_GT(accuracy("validation_accuracy"), 0.9);
  EXPECT_GT(accuracy("test_accuracy"), 0.9);
  EXPECT_EQ(run_record().at("provenance").at("dataset").at("files").size(), 6u);
}

TEST_F(OwnPictures, WhatCannotBeTrainedIsRefusedWithOneLine) {
  folder_.write("values/x.npy", test::npy_file("|u1", "(2, 4, 4)", std::string(32, '\1')));
  folder_.write("values/y.npy", test::npy_file("<f4", "(2,)", test::bytes_of<float>({0.5f, 1.5f})));
  EXPECT_THAT(train(R"({"name": "v", "path": "values"})").err,
              HasSubstr("loss: got cross_entropy (the default), but the targets are numbers"));
  folder_.write("one/only/a.png", test::png_file(picture(0, 1)));
  expect_refused(R"({"name": "one", "path": "one"})", "one: ");
  folder_.write("broken/a/1.png", test::png_file(picture(0, 1)));
  folder_.write("broken/b/1.png", test::png_file(picture(1, 1)).substr(0, 60));
  expect_refused(R"({"name": "broken", "path": "broken"})", "no image of class \"b\" can be decoded");
  folder_.write("text", "hello");
  expect_refused(R"({"name": "text", "path": "text"})",
                 "text: its format is not recognised. Known are: idx,");
}

}  // namespace
}  // namespace sweep::testing
