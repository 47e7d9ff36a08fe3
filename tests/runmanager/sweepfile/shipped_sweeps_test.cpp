// The shipped sweeps: what they expand to, and what is said of them when they are cut or damaged.

#include "core/base/file.h"
#include "core/network/network.h"
#include "runmanager/config/data_check.h"
#include "runmanager/plan/plan.h"
#include "runmanager/sweepfile/settings/settings.h"
#include "tests/support/sweep_folder.h"

namespace sweep::sweepfile_shipped_sweeps_test {

std::filesystem::path shipped(const std::string& name) {
  return std::filesystem::path(SWEEP_SOURCE_DIR) / "sweeps" / name;
}

TEST(ShippedSweeps, HaveTheRunsThatTheyPromise) {
  const struct {
    const char* name;
    std::size_t runs;
    const char *first, *last;  // their names
  } sweeps[] = {
      {"cats-dogs", 2, "loss=mse", "loss=cross_entropy"},
      {"cifar10", 12, "", ""},
      {"cpu-vs-cuda", 12, "", ""},
      {"data-placement", 3, "", ""},
      {"fashion", 32, "lr=0.01,batch_size=100,shuffle=true,num_workers=0,device=cuda",
       "lr=0.001,batch_size=1000,shuffle=false,num_workers=1,device=cpu"},
      {"lr-batch-shuffle", 12, "", ""},
      {"mlp-momentum", 8, "", ""},
      {"mnist-mlp", 2, "optimizer=sgd,lr=0.5", "optimizer=adam,lr=0.001"},
      {"parallel", 10, "", ""},
      {"resnet", 4, "", ""},
      {"schedules", 6, "schedule=cosine,lr=0.03", "schedule=step,schedule.step_size=2,lr=0.1"},
      {"search-halving", 63, "", ""},
      {"search-tpe", 4, "", ""},  // those that need no results
      {"slurm", 16, "", ""},
  };
  for (const auto& [name, runs, first, last] : sweeps) {
    const Sweep sweep = load_sweep(shipped(std::string(name) + ".json"));
    ASSERT_EQ(sweep.runs.size(), runs) << name;
    EXPECT_THAT(sweep.runs.front().name, HasSubstr(first));
    EXPECT_THAT(sweep.runs.back().name, HasSubstr(last));
  }
}

TEST(ShippedSweeps, AllFitTheirData) {
  int sweeps = 0;
  for (const auto& file : std::filesystem::directory_iterator(shipped(""))) {
    if (file.path().extension() != ".json") continue;
    SCOPED_TRACE(file.path());
    ++sweeps;
    Sweep sweep;
    ASSERT_NO_THROW(sweep = load_sweep(file.path()));
    // Pictures of one's own are not here: two classes, of the size that the file asks for.
    const auto sizes = [](const DatasetSpec& spec) {
      if (const auto known = known_data_sizes(spec)) return *known;
      const auto [height, width] = spec.resize.value();
      return DataSizes{
          .shape = {spec.grayscale ? 1 : 3, height, width}, .classes = 2, .train = 20000, .validation = 2000};
    };
    EXPECT_NO_THROW(check_against_data(sweep, sizes));
    SweepPlan plan{.sweep = &sweep};
    EXPECT_NO_THROW(plan_runs(plan, sizes, unavailable_reason));
  }
  EXPECT_GE(sweeps, 12);
}

NetworkSpec shipped_network(const std::string& name) {
  const std::string file = shipped("networks/" + name).string();
  Problems problems;
  NetworkSpec network = network_of(complete_network(parse_json(read_file(file), file), problems));
  problems.throw_if_any();
  return network;
}

TEST(ShippedNetworks, HaveTheShapesAndWeightsThatPyTorchCounts) {
  const Network resnet(shipped_network("resnet.json"), {3, 32, 32});
  EXPECT_EQ(resnet.parameter_count(), 78042u);
  EXPECT_EQ(resnet.buffer_count(), 2u * 336);
  EXPECT_EQ(resnet.output(), Shape{10});
  EXPECT_EQ(Network(shipped_network("resnet.json"), {1, 28, 28}).layers().back().input, Shape{64});
  const Network cats_dogs(shipped_network("cats-dogs.json"), {1, 50, 50});
  EXPECT_EQ(cats_dogs.parameter_count(), 520706u);
  EXPECT_EQ(cats_dogs.output(), Shape{2});
  // 16·3·9 + 16, 32·16·9 + 32, 64·32·9 + 64, 64·1024 + 64, 10·64 + 10.
  const Network cifar(shipped_network("cifar-cnn.json"), {3, 32, 32});
  EXPECT_EQ(cifar.parameter_count(), 448u + 4640u + 18496u + 65600u + 650u);
  EXPECT_EQ(cifar.output(), Shape{10});
}

TEST(ShippedSweeps, TheNetworkIsTheOneOfTheDeeplizardSeries) {
  const RunConfig run = load_sweep(shipped("fashion.json")).runs[0];
  const Network network(run.network, {1, 28, 28});
  // 6·1·5·5 + 6, 12·6·5·5 + 12, 192·120 + 120, 120·60 + 60, 60·10 + 10: as PyTorch counts.
  EXPECT_EQ(network.parameter_count(), 156u + 1812u + 23160u + 7260u + 610u);
}

// A sweep or a network that is cut or damaged anywhere still gives runs or a message, and never anything
// else.
class DamagedFile : public ::testing::TestWithParam<const char*> {
 protected:
  DamagedFile() {
    for (const char* network : {"networks/fashion-cnn.json", "networks/mlp.json", "networks/resnet.json"})
      folder_.write(network, read_file(shipped(network)));
    if (is_network_) folder_.write("s.json", R"({"dataset": "mnist", "network": "n.json"})");
  }

  // The sweep with `text` in the file's place.
  Sweep load(const std::string& text) const {
    folder_.write(is_network_ ? "n.json" : "s.json", text);
    LoadOptions options;
    options.cuda_device_count = 1;
    return load_sweep(folder_.path() / "s.json", {}, options);
  }
  void expect_runs_or_message(const std::string& text) const {
    try {
      const Sweep sweep = load(text);
      EXPECT_FALSE(sweep.runs.empty());
      std::set<std::string> names;
      for (const RunConfig& run : sweep.runs) EXPECT_TRUE(names.insert(run.name).second);
    } catch (const ConfigError& error) {
      EXPECT_STRNE(error.what(), "");
    }
  }

  const SweepFolder folder_;
  const std::string text_ = read_file(shipped(GetParam()));
  const bool is_network_ = std::string_view(GetParam()).starts_with("networks/");
  // All positions of a long network would take too long.
  const std::size_t step_ = is_network_ ? 1 + text_.size() / 1000 : 1;
};

TEST_P(DamagedFile, CutAnywhereGivesAMessage) {
  for (std::size_t cut = 0; cut + 2 < text_.size(); cut += step_) {  // Without the last } and line break.
    SCOPED_TRACE(cut);
    EXPECT_THROW(load(text_.substr(0, cut)), ConfigError);
  }
}

// Bytes that mean something to JSON or to numbers, and some that mean nothing anywhere. Each position of a
// file gets some of them, in turn: all of them in all positions would take a minute.
std::vector<char> bytes_for(std::size_t at) {
  static const std::string bytes =
      std::string("\"{}[]:,-0159.eE \\/\n") + std::string("\0\x01\x7F\x80\xFF", 5);
  std::vector<char> chosen;
  for (std::size_t i = 0; i < 4; ++i) chosen.push_back(bytes[(at * 5 + i * 7) % bytes.size()]);
  return chosen;
}

TEST_P(DamagedFile, WithBytesReplacedOrRemovedAnywhereGivesRunsOrAMessage) {
  for (std::size_t at = 0; at < text_.size(); at += step_) {
    std::vector<std::string> damaged;
    for (const char byte : bytes_for(at)) damaged.emplace_back(text_)[at] = byte;
    for (const std::size_t length : {1u, 7u}) damaged.emplace_back(text_).erase(at, length);
    for (const std::string& text : damaged) {
      SCOPED_TRACE(::testing::Message() << "at " << at << ": " << text.substr(at, 10));
      expect_runs_or_message(text);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Shipped, DamagedFile,
                         ::testing::Values("fashion.json", "cpu-vs-cuda.json", "lr-batch-shuffle.json",
                                           "mlp-momentum.json", "resnet.json", "schedules.json",
                                           "search-tpe.json", "slurm.json", "networks/fashion-cnn.json",
                                           "networks/resnet.json"));

}  // namespace sweep::sweepfile_shipped_sweeps_test
