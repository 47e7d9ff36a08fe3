// The sweeps that follow known tutorials, on generated data of the form of theirs.

#include "tests/support/generated_pictures.h"
#include "tests/support/idx_files.h"
#include "tests/support/image_files.h"
#include "tests/support/program_folder.h"

#include "tests/support/test.h"

namespace sweep::testing::tutorials_test {

using nlohmann::json;

class Tutorials : public ProgramFolder {
 protected:
  // Runs a shipped sweep with `overrides`.
  Finished train(const std::string& name, std::vector<std::string> overrides) const {
    overrides.insert(overrides.begin(), std::string(SWEEP_SOURCE_DIR) + "/sweeps/" + name);
    overrides.emplace_back("device=cpu");
    return run(overrides);
  }
};

TEST_F(Tutorials, TheMlpOnDigitsBeginsAtChanceAndLearns) {
  test::write_digits(path("digits"), "train", 0, 3000);
  test::write_digits(path("digits"), "t10k", 3000, 500);
  train("mnist-mlp.json",
        {"dataset.name=digits", "dataset.path=" + path("digits").string(), "dataset.validation=500"});
  for (const char* name : {"optimizer=sgd,lr=0.5", "optimizer=adam,lr=0.001"}) {
    const json run = record("mnist-mlp/" + std::string(name));
    ASSERT_EQ(run["epochs"].size(), 6u) << name;
    EXPECT_EQ(run["epochs"][0]["epoch"], 0);
    EXPECT_LT(run["epochs"][0]["validation_accuracy"].get<double>(), 0.35) << "untrained, of ten classes";
    EXPECT_GT(run["epochs"][5]["validation_accuracy"].get<double>(), 0.95) << name;
    EXPECT_GT(run["metrics"]["test_accuracy"].get<double>(), 0.95) << name;
    EXPECT_EQ(run["config"]["batch_size"], 128);
    EXPECT_EQ(run["config"]["dataset"]["split"], "random");
  }
  EXPECT_EQ(record("mnist-mlp/optimizer=sgd,lr=0.5")["epochs"][0]["validation_loss"],
            record("mnist-mlp/optimizer=adam,lr=0.001")["epochs"][0]["validation_loss"])
      << "the same untrained network on the same samples";
}

// Pictures of several sizes, a folder per class.
void write_pets(const SweepFolder& folder, unsigned count) {
  for (unsigned i = 0; i < count; ++i) {
    const bool dog = i % 2 == 1;
    const unsigned height = 56 + i % 13, width = 60 + i % 7;
    const test::Pixels picture = test::make_pixels(
        height, width, 3, [=](unsigned y, unsigned x, unsigned) { return test::pet_pixel(i, y, x); });
    folder.write(std::string(dog ? "PetImages/Dog/" : "PetImages/Cat/") + std::to_string(i) + ".jpg",
                 test::jpeg_file(picture));
  }
}

TEST_F(Tutorials, CatsAndDogsAreToldApartAndTheRunEndsWhenItNoLongerImproves) {
  write_pets(folder_, 160);
  folder_.write("PetImages/Cat/666.jpg", "");  // The real set also has damaged files.
  const std::string pets = "dataset.path=" + path("PetImages").string();
  const Finished finished =
      train("cats-dogs.json", {pets, "dataset.validation=0.2", "batch_size=16", "epochs=8", "log.batches=2",
                               "stop.min_delta=0.05", "stop.patience=2"});
  EXPECT_THAT(finished.err, HasSubstr("1 file was skipped"));
  for (const char* name : {"loss=mse", "loss=cross_entropy"}) {
    const json run = record("cats-dogs/" + std::string(name));
    ASSERT_TRUE(run.contains("stopped")) << run["epochs"].dump();
    const int best = run["best_epoch"];
    EXPECT_EQ(run["stopped"]["epoch"], best + 2);
    EXPECT_GE(run["epochs"][static_cast<std::size_t>(best) - 1]["validation_accuracy"].get<double>(), 0.95)
        << name;
    EXPECT_TRUE(exists("runs/cats-dogs/" + std::string(name) + "/best.safetensors"));
    const Finished shown = (this->run({"show", "runs/cats-dogs/" + std::string(name)}));
    EXPECT_THAT(shown.out, ::testing::ContainsRegex("\n +" + std::to_string(best) + " .* best\n"));
    EXPECT_THAT(shown.out, HasSubstr("stopped early: Loss/validation has not improved by more than 0.05"));
  }
  // On the CPU the placement changes nothing, in particular no bit.
  train("data-placement.json", {pets, "batch_size=16", "epochs=3"});
  const json device = record("data-placement/dataset.placement=device,num_workers=0"),
             host = record("data-placement/dataset.placement=host,num_workers=2");
  EXPECT_EQ(device["metrics"], host["metrics"]);
  EXPECT_GE(device["metrics"]["validation_accuracy"].get<double>(), 0.9);
}

TEST_F(Tutorials, TheProductOnCifarIsLearntInColourAndShowsIt) {
  test::write_cifar10(
      [&](const std::string& name, const std::string& bytes) { folder_.write("cifar/" + name, bytes); }, 200);
  train("cifar10.json",
        {"dataset.path=" + path("cifar").string(), "dataset.validation=100", "batch_size=50,100,500"});
  int learnt = 0;
  const json rows = results("cifar10");
  ASSERT_EQ(rows.size(), 12u);
  for (const json& row : rows) {
    const std::string name = row.at("name");
    const json run = record("cifar10/" + name);
    EXPECT_EQ(run["status"], "completed");
    ASSERT_EQ(run["epochs"].size(), 5u);
    EXPECT_EQ(run["provenance"]["dataset"]["files"].size(), 6u);
    const double accuracy = run["metrics"]["test_accuracy"];
    // Without the colours 50 % would be the most. With the larger rate some runs see only these, or only the
    // places; batches of 500 leave 10 steps.
    if (run["config"]["lr"] == 0.001 && run["config"]["batch_size"] < 500) {
      EXPECT_GE(accuracy, 0.95) << name;
    } else {
      EXPECT_GE(accuracy, 0.2) << name << ": chance is 10 %";
    }
    learnt += accuracy > 0.95;
    const std::string png = first_picture("cifar10/" + name);
    ASSERT_GT(png.size(), 100u) << name;
    EXPECT_EQ(png[25], 2) << "the type of the grid's pixels: red, green and blue";
  }
  EXPECT_GE(learnt, 5);
}

}  // namespace sweep::testing::tutorials_test
