// What a good sweep file gives: settings with their defaults, and what is kept of the file.
#include "runmanager/sweepfile/sweep_file.h"

#include <nlohmann/json.hpp>

#include "runmanager/config/data_check.h"
#include "runmanager/sweepfile/settings/settings.h"
#include "tests/support/growth.h"
#include "tests/support/sweep_folder.h"

namespace sweep::sweep_file_test {

using LoadSweep = testing::InSweepFolder;

// A run is read from its resolved settings, as EveryKeyReachesTheRun proves.
TEST_F(LoadSweep, EverySettingHasADefault) {
  const Sweep sweep = folder.load(R"({"dataset": "mnist", "network": "net.json"})");
  EXPECT_EQ(sweep.name, "s");  // The file's name.
  ASSERT_EQ(sweep.runs.size(), 1u);
  const RunConfig& run = sweep.runs[0];
  EXPECT_EQ(run.name, "run");
  EXPECT_TRUE(run.params.empty());
  EXPECT_EQ(run.network->name, "net");
  EXPECT_EQ(run.network->layers.at(1).name, "fc1");
  EXPECT_EQ(run.network->layers.at(2).name, "2");  // As torch.nn.Sequential names what has no name.
  EXPECT_EQ(run.clip_norm, 0);
  EXPECT_TRUE(run.init.empty());
  const auto spelled_out = folder.load(R"({"dataset": "mnist", "network": "net.json", "optimizer": "sgd",
      "loss": "cross_entropy", "schedule": "constant", "epochs": 1, "seed": 0, "lr": 0.01, "batch_size": 100,
      "shuffle": true, "deterministic": true, "num_workers": 0, "device": "auto",
      "log": {"images": 64, "batches": 0, "histograms": true}})");
  EXPECT_EQ(run.resolved, spelled_out.runs.at(0).resolved);
}

TEST_F(LoadSweep, EveryKeyReachesTheRun) {
  const Sweep sweep = folder.load(R"({
    "$schema": "sweep.schema.json", "name": "all", "evaluate_first": true, "checkpoint": "best",
    "schedule": {"name": "warmup", "total_iters": 2, "then": {"name": "cosine", "T_max": 7}},
    "stop": {"metric": "Accuracy/validation", "patience": 5, "min_delta": 0.5, "restore_best": true},
    "loss": {"name": "cross_entropy", "label_smoothing": 0.1}, "clip_norm": 2, "epochs": 7, "seed": 9007199254740991,
    "dataset": {"name": "mine", "path": "data", "format": "image_folder", "validation": 0.25, "test": 40, "split": "random", "split_seed": 6,
                "limit": 500, "resize": [24, 32], "grayscale": true, "label": "species",
                "normalize": {"mean": [0.5], "std": [0.25]}, "placement": "device",
                "augment": [{"random_crop": {"padding": 4}}, "horizontal_flip", {"cutout": {"size": 8}}]},
    "network": {"name": "tiny", "layers": [{"type": "flatten"}, {"name": "out", "type": "linear", "out_features": 10, "bias": false}]},
    "optimizer": {"name": "adam", "betas": [0.8, 0.99], "eps": 1e-6, "weight_decay": 1},
    "lr": 1, "batch_size": 32, "shuffle": false, "deterministic": false, "num_workers": 3, "device": "cpu", "init": "weights/a.safetensors",
    "log": {"images": 0, "graph": false, "histograms": false, "hparams": false, "text": false, "layout": false,
            "predictions": false, "batches": 10}})");
  const RunConfig& run = sweep.runs.at(0);
  EXPECT_EQ(sweep.name, "all");
  EXPECT_EQ(run.epochs, 7);
  EXPECT_EQ(run.seed, 9007199254740991u);
  EXPECT_EQ(run.dataset.path, folder.path() / "data");  // Relative to the sweep file.
  EXPECT_EQ(std::get<double>(run.dataset.validation), 0.25);
  EXPECT_EQ(run.dataset.format, "image_folder");
  EXPECT_EQ(std::get<std::size_t>(run.dataset.test), 40u);
  EXPECT_EQ(run.dataset.split, SplitMethod::kRandom);
  EXPECT_EQ(run.dataset.split_seed, 6u);
  EXPECT_EQ(run.dataset.resize.value(), (std::array<std::int64_t, 2>{24, 32}));
  EXPECT_TRUE(run.dataset.grayscale);
  EXPECT_EQ(run.dataset.label, "species");
  EXPECT_EQ(run.dataset.limit, 500u);
  EXPECT_THAT(run.dataset.transform.mean, ElementsAre(0.5f));
  EXPECT_THAT(run.dataset.transform.std, ElementsAre(0.25f));
  EXPECT_THAT(run.augment, ElementsAre(AugmentStep{AugmentKind::kRandomCrop, 4},
                                       AugmentStep{AugmentKind::kHorizontalFlip, 0},
                                       AugmentStep{AugmentKind::kCutout, 8}));
  EXPECT_EQ(run.placement, Placement::kDevice);
  EXPECT_EQ(run.resolved["dataset"]["augment"].dump(),
            R"([{"random_crop":{"padding":4}},"horizontal_flip",{"cutout":{"size":8}}])");
  EXPECT_EQ(run.network->name, "tiny");
  EXPECT_EQ(std::get<bool>(run.network->layers.at(1).arguments.at("bias")), false);
  const auto adam = std::get<AdamOptions>(run.optimizer);
  EXPECT_EQ(adam.beta1, 0.8);
  EXPECT_EQ(adam.beta2, 0.99);
  EXPECT_EQ(adam.eps, 1e-6);
  EXPECT_EQ(adam.weight_decay, 1.0);
  EXPECT_EQ(run.loss.label_smoothing, 0.1);
  EXPECT_EQ(run.clip_norm, 2);
  EXPECT_EQ(run.lr, 1.0);
  EXPECT_EQ(run.batch_size, 32u);
  EXPECT_FALSE(run.shuffle);
  EXPECT_FALSE(run.deterministic);
  EXPECT_EQ(run.resolved.at("deterministic"), false) << "which makes it another run";
  EXPECT_EQ(run.num_workers, 3);
  EXPECT_EQ(run.device, "cpu");
  EXPECT_EQ(run.init, folder.path() / "weights/a.safetensors");
  EXPECT_EQ(run.log.images, 0);
  EXPECT_FALSE(run.log.graph || run.log.histograms || run.log.hparams || run.log.text || run.log.layout ||
               run.log.predictions);
  EXPECT_EQ(run.log.batches, 10);
  const auto warmup = std::get<WarmupSchedule>(run.schedule);
  EXPECT_EQ(warmup.total_iters, 2);
  EXPECT_EQ(std::get<CosineSchedule>(warmup.then.value()).t_max, 7);
  EXPECT_TRUE(run.evaluate_first);
  EXPECT_EQ(run.checkpoint, kKeepBest);
  const StopSpec stop = run.stop.value();
  EXPECT_EQ(stop.goal.asked, "Accuracy/validation");
  EXPECT_TRUE(stop.goal.largest_is_best);
  EXPECT_EQ(stop.patience, 5);
  EXPECT_EQ(stop.min_delta, 0.5);
  EXPECT_TRUE(stop.restore_best);
}

TEST_F(LoadSweep, WhatIsSaidOfATableReachesTheRun) {
  const auto load = [&](const std::string& keys) {
    const std::string text =
        R"({"network": "net.json", "dataset": {"name": "t", "path": "t.csv")" + keys + "}}";
    return folder.load(text).runs.at(0).dataset;
  };
  const DatasetSpec spec = load(R"(, "target": ["a", "b"], "missing": "mean", "categories": "ordinal",
                                   "categorical": "zip", "ignore": ["id", "name"], "normalize": "none")");
  EXPECT_THAT(spec.targets, ElementsAre("a", "b"));
  EXPECT_EQ(spec.missing, MissingValues::kMean);
  EXPECT_EQ(spec.categories, Categories::kOrdinal);
  EXPECT_THAT(spec.categorical, ElementsAre("zip"));
  EXPECT_THAT(spec.ignore, ElementsAre("id", "name"));
  EXPECT_EQ(spec.normalization, Normalization::kNone);
  const DatasetSpec other =
      load(R"(, "decimal": ",", "encoding": "latin-1", "unknown": "zeros", "ignore": "")");
  EXPECT_EQ(other.decimal, DecimalMark::kComma);
  EXPECT_EQ(other.encoding, TextEncoding::kLatin1);
  EXPECT_EQ(other.unknown, UnknownCategory::kZeros);
  EXPECT_THAT(other.ignore, ElementsAre(""));
  EXPECT_EQ(load(R"(, "channels": "last")").channels, ChannelOrder::kLast);
  EXPECT_EQ(load(R"(, "normalize": "train")").normalization, Normalization::kTrain);
  EXPECT_EQ(load("").normalization, Normalization::kAuto);
}

TEST_F(LoadSweep, EveryLossReachesTheRun) {
  const auto loss = [&](const std::string& text) {
    return folder.load(SweepFolder::with("\"loss\": " + text)).runs.at(0).loss;
  };
  EXPECT_EQ(loss(R"("mse")").kind, LossOptions::Kind::kMse);
  EXPECT_EQ(loss(R"("l1")").kind, LossOptions::Kind::kL1);
  EXPECT_EQ(loss(R"("bce_with_logits")").kind, LossOptions::Kind::kBceWithLogits);
  EXPECT_EQ(loss(R"("smooth_l1")").beta, 1);
  EXPECT_EQ(loss(R"({"name": "smooth_l1", "beta": 0.5})").beta, 0.5);
  EXPECT_THAT(loss(R"({"class_weights": [0, 2.5, 3, 4, 5, 6, 7, 8, 9, 10]})").class_weights,
              ElementsAre(0, 2.5f, 3, 4, 5, 6, 7, 8, 9, 10));
}

// The resolved settings are a run's identity: with a key missing there, a finished run with another value
// would be kept as if it were the same.
TEST_F(LoadSweep, EveryKeyThatARunCanHaveIsInItsResolvedSettings) {
  const RunConfig run =
      folder
          .load(SweepFolder::with(
              R"("init": "w.safetensors", "clip_norm": 1, "stop": {"metric": "Loss/train"})"))
          .runs.at(0);
  for (const Setting& setting : top_level_settings()) {
    if (!setting.sweepable || setting.name == "precision") continue;  // which changes nothing
    EXPECT_TRUE(run.resolved.contains(setting.name)) << setting.name;
  }
  for (const char* key : {"stop", "log"}) {
    for (const Setting& setting : find_setting(top_level_settings(), key)->table())
      EXPECT_TRUE(run.resolved.at(key).contains(setting.name)) << setting.name;
  }
}

TEST_F(LoadSweep, DataSetsBelowSweepDataAreKnownByName) {
  std::filesystem::create_directories(folder.path() / "own-set");
  const std::string file = R"({"dataset": "own-set", "network": "net.json"})";
  EXPECT_THAT(
      folder.error(file),
      HasSubstr("dataset: got \"own-set\", want fashion-mnist, mnist, cifar10 or cifar100, or an object"));
  ::setenv("SWEEP_DATA", folder.path().c_str(), 1);
  EXPECT_EQ(folder.load(file).runs[0].dataset.name, "own-set");
  ::unsetenv("SWEEP_DATA");
}

TEST_F(LoadSweep, ErrorsFoundLaterNameTheirLocation) {
  const Sweep sweep = folder.load(
      R"({"dataset": {"name": "mine", "path": "d"}, "network": "net.json", "params": {"batch_size": [5, 50]}})");
  const auto sizes = [](const DatasetSpec&) { return DataSizes{{1, 28, 28}, 10, 20}; };
  EXPECT_EQ(folder.without_folder(message_of<ConfigError>([&] { check_against_data(sweep, sizes); })),
            "s.json:1:96: params.batch_size.1: got 50, want at most 20, the number of training samples");
  EXPECT_NO_THROW(check_against_data(sweep, [](const DatasetSpec&) { return DataSizes{{3, 9, 9}, 10, 50}; }));
}

TEST_F(LoadSweep, TakesLinearTimeForManyRuns) {
  const auto expand = [this](std::size_t runs) {
    const std::string last = std::to_string(runs);
    const Sweep sweep =
        folder.load(SweepFolder::with(R"("params": {"seed": {"range": [1, )" + last + ", 1]}}"));
    EXPECT_EQ(sweep.runs.size(), runs);
    EXPECT_EQ(sweep.runs.back().name, "seed=" + last);
  };
  EXPECT_LT(test::growth(expand, 1'500), test::kLinearGrowth);
}

}  // namespace sweep::sweep_file_test
