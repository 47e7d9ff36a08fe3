// Whole sweeps on a CUDA device and on the CPU, by the program: file, loader, training, results.
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "core/base/file.h"
#include "tests/runmanager/sweep_folder.h"
#include "tests/tools/program.h"

namespace sweep::testing {
namespace {

using nlohmann::json;

#if defined(SWEEP_CUDA_ON_HOST)
constexpr int kSamples = 250;  // an epoch of the stand-in takes a second
#else
constexpr int kSamples = 12000;
#endif

std::string sweep_file(const std::string& name) {
  return R"({"name": ")" + name + R"(", "dataset": {"name": "fashion-mnist", "validation": 0.2, "limit": )" +
         std::to_string(kSamples) + R"(},
    "network": {"name": "net", "layers": [
      {"name": "conv1", "type": "conv2d", "out_channels": 6, "kernel_size": 5},
      {"name": "relu1", "type": "relu"},
      {"name": "pool1", "type": "max_pool2d", "kernel_size": 2},
      {"name": "conv2", "type": "conv2d", "out_channels": 12, "kernel_size": 5, "bias": false},
      {"name": "bn2", "type": "batch_norm2d"},
      {"name": "relu2", "type": "relu"},
      {"name": "pool2", "type": "max_pool2d", "kernel_size": 2},
      {"name": "flatten", "type": "flatten"},
      {"name": "fc1", "type": "linear", "out_features": 60},
      {"name": "relu3", "type": "relu"},
      {"name": "drop", "type": "dropout", "p": 0.2},
      {"name": "out", "type": "linear", "out_features": 10}]},
    "optimizer": "adam", "epochs": 3, "seed": 1,
    "params": {"lr": [0.002], "batch_size": [70], "shuffle": [true, false], "num_workers": [0, 1],
               "device": ["cuda", "cpu"]}})";
}

// The runs of a sweep by their names.
std::map<std::string, json> runs_of(const SweepFolder& folder, const std::string& name) {
  std::ofstream(folder.path() / (name + ".json")) << sweep_file(name);
  const Finished finished = run_program({name + ".json", "--strict", "--quiet"}, folder.path());
  EXPECT_EQ(finished.code, 0) << finished.out << finished.err;
  std::map<std::string, json> runs;
  const json results = json::parse(read_file(folder.path() / "runs" / name / "results.json"));
  for (const json& run : results.at("runs")) runs[run.at("name").get<std::string>()] = run;
  return runs;
}

std::string with_device(std::string name, const std::string& device) {
  return name.replace(name.rfind("device="), std::string::npos, "device=" + device);
}

TEST(CudaLibraries, AreNamedWithTheirVersionOrWhyThereIsNone) {
  const Finished text = run_program({"devices"}, "."), finished = run_program({"devices", "--json"}, ".");
  ASSERT_EQ(text.code, 0) << text.err;
  ASSERT_EQ(finished.code, 0) << finished.err;
  if (text.out.find("this build has no CUDA") != std::string::npos) GTEST_SKIP() << text.out;
  const json libraries = json::parse(finished.out).at("libraries");
  ASSERT_EQ(libraries.size(), 2u) << "cuBLASLt and cuDNN";
  for (const json& library : libraries) {
    EXPECT_NE(library.at("version").is_null(), library.at("problem").is_null()) << library;
    for (const char* key : {"name", "use", "version", "path", "problem"}) {
      if (library.at(key).is_null()) continue;
      EXPECT_NE(text.out.find(library[key].get<std::string>()), std::string::npos) << text.out << library;
    }
  }
}

class CudaParity : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists("/usr/share/datasets/fashion-mnist"))
      GTEST_SKIP() << "dataset-fashion-mnist is not installed";
    const Finished devices = run_program({"devices"}, folder_.path());
    if (devices.out.find("cannot be used") != std::string::npos) GTEST_SKIP() << devices.out;
  }
  SweepFolder folder_;
};

TEST_F(CudaParity, CurvesLieOnTheCpusAndASecondSweepHasTheSameBits) {
  const auto runs = runs_of(folder_, "first"), again = runs_of(folder_, "second");
  ASSERT_EQ(runs.size(), 8u);
  for (const auto& [name, cuda] : runs) {
    if (name.find("device=cuda") == std::string::npos) continue;
    SCOPED_TRACE(name);
    const json &cpu = runs.at(with_device(name, "cpu")), &repeated = again.at(name);
    ASSERT_EQ(cuda.at("status"), "completed");
    ASSERT_EQ(cuda.at("epochs").size(), 3u);
    for (std::size_t epoch = 0; epoch < 3; ++epoch) {
      const json &a = cuda.at("epochs")[epoch], &b = cpu.at("epochs")[epoch],
                 &c = repeated.at("epochs")[epoch];
      EXPECT_NEAR(a.at("loss").get<double>() / b.at("loss").get<double>(), 1, epoch == 0 ? 0.002 : 0.02);
      EXPECT_NEAR(a.at("accuracy").get<double>(), b.at("accuracy").get<double>(), 0.005);
      EXPECT_NEAR(a.at("validation_loss").get<double>() / b.at("validation_loss").get<double>(), 1, 0.02);
      for (const char* value :
           {"loss", "accuracy", "number_correct", "validation_loss", "validation_accuracy"})
        EXPECT_EQ(a.at(value), c.at(value)) << value;
    }
    EXPECT_LT(cuda.at("epochs")[2].at("loss").get<double>(), cuda.at("epochs")[0].at("loss").get<double>());
  }
}

}  // namespace
}  // namespace sweep::testing
