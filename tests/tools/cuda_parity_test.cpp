// Whole sweeps on a CUDA device and on the CPU, by the program: file, loader, training, results.

#include "core/data/safetensors.h"
#include "tests/support/event_files.h"
#include "tests/support/fashion_mnist.h"
#include "tests/support/program_folder.h"

namespace sweep::testing::cuda_parity_test {

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
               "dataset.placement": ["device", "host"], "device": ["cuda", "cpu"]},
    "zip": [["shuffle", "num_workers"]]})";
}

// The bits of all that was trained: parameters, running statistics, the optimizer's state.
std::map<std::string, std::vector<float>> trained_values(const std::filesystem::path& run) {
  std::map<std::string, std::vector<float>> values;
  const TensorFile file = read_safetensors(run / "checkpoint.safetensors");
  for (const NamedTensor& tensor : file.tensors) values[tensor.name] = tensor.values;
  return values;
}

// Every histogram of a run: tag and epoch, and what was counted.
std::map<std::pair<std::string, std::int64_t>, proto::Histogram> histograms(
    const std::filesystem::path& run) {
  std::map<std::pair<std::string, std::int64_t>, proto::Histogram> all;
  for (const proto::Event& event : tbwriter::read_run(run)) {
    for (const auto& value : event.summary().value()) {
      if (value.has_histo()) all[{value.tag(), event.step()}] = value.histo();
    }
  }
  return all;
}

// Compares weights that were trained alike, except for rounding and its growth in an epoch.
void expect_like(const proto::Histogram& a, const proto::Histogram& b) {
  EXPECT_EQ(a.num(), b.num());
  EXPECT_EQ(std::accumulate(a.bucket().begin(), a.bucket().end(), 0.0), a.num());
  EXPECT_EQ(a.bucket_size(), a.bucket_limit_size());
  const double size = std::sqrt(b.sum_squares() / b.num());
  EXPECT_NEAR(a.sum() / a.num(), b.sum() / b.num(), 0.02 * size);
  EXPECT_NEAR(std::sqrt(a.sum_squares() / a.num()), size, 0.02 * size);
  EXPECT_NEAR(a.min(), b.min(), 0.1 * size);
  EXPECT_NEAR(a.max(), b.max(), 0.1 * size);
}

// The name of a run that differs in one parameter.
std::string with(std::string name, const std::string& parameter, const std::string& value) {
  const std::size_t begin = name.find(parameter + "=") + parameter.size() + 1;
  return name.replace(begin, std::min(name.find(',', begin), name.size()) - begin, value);
}

// Every test needs the device and the data set.
class NeedsCuda : public ::testing::Environment {
 public:
  void SetUp() override {
    if (const Finished devices = run_program({"devices"}, ".");
        devices.out.find("cannot be used") != std::string::npos) {
      say_that_all_are_skipped();
      GTEST_SKIP() << devices.out;
    }
    if (test::fashion_mnist_problem() && !test::data_is_required()) say_that_all_are_skipped();
    SKIP_WITHOUT_FASHION_MNIST();
  }

 private:
  // GoogleTest counts tests that an environment skips as passed; CTest looks for these words.
  static void say_that_all_are_skipped() { std::cout << "[  SKIPPED ] all tests\n"; }
};

const ::testing::Environment* const environment = ::testing::AddGlobalTestEnvironment(new NeedsCuda);

class CudaParity : public ProgramFolder {
 protected:
  // The runs of a sweep by their names.
  std::map<std::string, json> train(const std::string& name) const {
    folder_.write(name + ".json", sweep_file(name));
    run({name + ".json", "--strict", "--quiet"});
    std::map<std::string, json> runs;
    for (const json& run : results(name)) runs[run.at("name").get<std::string>()] = run;
    return runs;
  }
};

TEST_F(CudaParity, SweepOverBothDevicesEndsWithTheirComparison) {
  folder_.write("s.json", R"({"dataset": {"name": "fashion-mnist", "limit": 200},
      "network": {"layers": [{"type": "flatten"}, {"type": "linear", "out_features": 10}]}, "epochs": 1,
      "params": {"lr": [0.1, 0.01], "device": ["cpu", "cuda"]}})");
  const Finished both = run({"s.json", "--logdir", "both"});
  const std::size_t comparison = both.out.find("\ndevice: ");
  ASSERT_NE(comparison, std::string::npos) << both.out;
  EXPECT_NE(both.out.find("(geometric mean of 2 pairs", comparison), std::string::npos) << both.out;
  EXPECT_NE(both.out.find("first epoch", comparison), std::string::npos) << both.out;
  const Finished one = run({"s.json", "device=cuda", "--logdir", "one"});
  EXPECT_EQ(one.out.find("geometric mean"), std::string::npos) << one.out;
}

TEST_F(CudaParity, CurvesLieOnTheCpusAndASecondSweepHasTheSameBits) {
  const auto runs = train("first"), again = train("second");
  ASSERT_EQ(runs.size(), 8u);
  for (const auto& [name, cuda] : runs) {
    if (name.find("device=cuda") == std::string::npos) continue;
    SCOPED_TRACE(name);
    const json &cpu = runs.at(with(name, "device", "cpu")), &repeated = again.at(name);
    ASSERT_EQ(cuda.at("status"), "completed");
    ASSERT_EQ(cpu.at("status"), "completed");
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
    const auto values = trained_values(path("runs/first") / name);
    EXPECT_GT(values.size(), 10u);
    EXPECT_EQ(values, trained_values(path("runs/second") / name)) << "trained twice";
    EXPECT_EQ(values, trained_values(path("runs/first") / with(name, "placement", "host")))
        << "samples on the host";
    const auto counted = histograms(path("runs/first") / name),
               counted_again = histograms(path("runs/second") / name);
    EXPECT_EQ(counted.size(), 2u * 9 * 3) << "parameters and gradients of three epochs";
    for (const auto& [place, histogram] : counted) {
      EXPECT_EQ(histogram.SerializeAsString(), counted_again.at(place).SerializeAsString()) << place.first;
    }
    const auto on_cpu = histograms(path("runs/first") / with(name, "device", "cpu"));
    ASSERT_EQ(counted.size(), on_cpu.size());
    for (const auto& [place, histogram] : counted) {
      if (place.second > 0 || place.first.starts_with("gradients/")) continue;
      SCOPED_TRACE(place.first);
      expect_like(histogram, on_cpu.at(place));
    }
    EXPECT_GT(cuda.at("setup_seconds").get<double>(), 0);
    const json trained = record("first/" + name);
    EXPECT_EQ(trained.at("placement"), trained.at("params").at("dataset.placement"));
    EXPECT_GT(trained.at("epochs")[0].at("device_seconds").get<double>(), 0);
    EXPECT_TRUE(record("first/" + with(name, "device", "cpu")).at("placement").is_null());
    EXPECT_LT(cuda.at("epochs")[2].at("loss").get<double>(), cuda.at("epochs")[0].at("loss").get<double>());
  }
}

}  // namespace sweep::testing::cuda_parity_test
