// Compares whole sweeps of the program with PyTorch's trainings: the same network, initial weights, data and
// order of the samples give the same losses and accuracies of every epoch.

#include "runmanager/sweepfile/sweep_file.h"
#include "tests/support/generated_pictures.h"
#include "tests/support/image_files.h"
#include "tests/support/program_folder.h"
#include "tests/support/reference_data.h"

namespace sweep::testing::curves_test {

// tests/data/make_curves.py says what is in it.
const json& curves() {
  static const json all = json::parse(read_file(test::reference_path("curves.json"))).at("curves");
  return all;
}

struct Counts {
  unsigned train, validation, test;
};

class Curve : public ProgramFolder, public ::testing::WithParamInterface<std::size_t> {
 protected:
  // The value of the key "dataset", whose files it writes.
  json write_data(const std::string& name, const Counts& counts) const {
    json dataset = {{"name", "own"}, {"path", "data"}, {"validation", counts.validation}, {"split", "end"}};
    if (name == "digits") {
      test::write_digits(path("data"), "train", 0, counts.train + counts.validation);
      test::write_digits(path("data"), "t10k", counts.train + counts.validation, counts.test);
    } else if (name == "cifar") {
      // All training samples except the last four are in the first batch.
      const unsigned first = counts.train + counts.validation - 4;
      folder_.write("data/data_batch_1.bin", test::cifar_records(0, first));
      for (const unsigned batch : {2u, 3u, 4u, 5u}) {
        folder_.write("data/data_batch_" + std::to_string(batch) + ".bin",
                      test::cifar_records(first + batch - 2, 1));
      }
      folder_.write("data/test_batch.bin", test::cifar_records(first + 4, counts.test));
      dataset["normalize"] = "train";
    } else if (name == "pets") {
      write_pets("train", 0, counts.train);
      write_pets("validation", counts.train, counts.validation);
      write_pets("test", counts.train + counts.validation, counts.test);
      dataset = {{"name", "pets"}, {"path", "data"}, {"grayscale", true}, {"split", "end"}};
    } else {
      dataset["path"] = test::reference_path("tables/" + name + ".csv").string();
    }
    return dataset;
  }

  void write_pets(const std::string& part, unsigned first, unsigned count) const {
    for (unsigned i = first; i < first + count; ++i) {
      const auto pixel = [=](unsigned y, unsigned x, unsigned) { return test::pet_pixel(i, y, x); };
      folder_.write("data/" + part + (i % 2 == 1 ? "/dog/" : "/cat/") + std::to_string(10'000 + i) + ".png",
                    test::png_file(test::make_pixels(50, 50, 1, pixel)));
    }
  }

  void write_initial_weights(const NetworkSpec& spec, const Shape& input) const {
    const Network network(spec, input);
    TensorFile file;
    std::uint32_t state = 12345;
    double inputs = 1;  // of one output; a bias follows its weight
    for (const Parameter& parameter : network.parameters()) {
      std::size_t size = 1;
      for (const std::int64_t extent : parameter.shape) size *= static_cast<std::size_t>(extent);
      if (parameter.shape.size() > 1)
        inputs = static_cast<double>(size) / static_cast<double>(parameter.shape.front());
      NamedTensor& tensor = file.tensors.emplace_back(NamedTensor{parameter.name, parameter.shape, {}});
      for (std::size_t i = 0; i < size; ++i) {
        state = 1664525u * state + 1013904223u;
        tensor.values.push_back(
            static_cast<float>((2.0 * (state >> 8) / 16777216.0 - 1) / std::sqrt(inputs)));
      }
    }
    write_safetensors(path("initial.safetensors"), file);
  }
};

// PyTorch's numbers are in double, the program's weights in float. The losses part by their rounding, which
// training amplifies the more, the longer it lasts.
void expect_near(const json& record, const json& expected, std::size_t samples, const std::string& key) {
  const double value = record.at(key), reference = expected.at(key);
  if (key.ends_with("accuracy")) {
    EXPECT_NEAR(value * static_cast<double>(samples), reference * static_cast<double>(samples), 1.01) << key;
  } else {
    EXPECT_NEAR(value / reference, 1, 1e-4) << key << " " << reference;
  }
}

TEST_P(Curve, IsPyTorchs) {
  const json& curve = curves().at(GetParam());
  const Counts counts = {curve.at("train"), curve.at("validation"), curve.at("test")};
  json sweep = curve.at("sweep");
  sweep["name"] = "curve";
  sweep["device"] = "cpu";
  sweep["dataset"] = write_data(curve.at("data"), counts);
  json& layers = sweep["network"]["layers"];
  for (const json& layer : curve.at("network")) {
    json flat = {{"name", layer.at("name")}, {"type", layer.at("type")}};
    flat.update(layer.at("arguments"));
    layers.push_back(flat);
  }
  const fs::path file = folder_.write("s.json", sweep.dump());
  const Sweep loaded = load_sweep(file);
  write_initial_weights(loaded.runs.at(0).network, load_dataset(loaded.runs[0].dataset).shape);
  sweep["init"] = "initial.safetensors";
  folder_.write("s.json", sweep.dump());
  run({"s.json", "--logdir", "runs"});

  const json trained = record("curve/run");
  EXPECT_EQ(trained.at("provenance").at("dataset").at("train"), counts.train);
  EXPECT_EQ(trained.at("provenance").at("dataset").at("validation"), counts.validation);
  const json& epochs = curve.at("epochs");
  ASSERT_EQ(trained.at("epochs").size(), epochs.size());
  for (std::size_t i = 0; i < epochs.size(); ++i) {
    SCOPED_TRACE("epoch " + trained.at("epochs")[i].at("epoch").dump());
    for (const auto& [key, value] : epochs[i].items()) {
      expect_near(trained.at("epochs")[i], epochs[i],
                  key.starts_with("validation") ? counts.validation : counts.train, key);
    }
  }
  for (const auto& [key, value] : curve.items())
    if (key.starts_with("test_")) expect_near(trained.at("metrics"), curve, counts.test, key);
}

INSTANTIATE_TEST_SUITE_P(All, Curve, ::testing::Range<std::size_t>(0, 8), [](const auto& at) {
  return curves().at(at.param).at("name").template get<std::string>();
});

TEST(Curves, AreAllTrained) { EXPECT_EQ(curves().size(), 8u); }

}  // namespace sweep::testing::curves_test
