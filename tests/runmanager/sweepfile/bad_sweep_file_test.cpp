// Every mistake in a sweep file is reported with its location, what was found and what is allowed, before
// anything trains.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/sweep_folder.h"

namespace sweep {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::SweepFolder;

struct Mistake {
  const char* name;
  std::string settings;  // after a good dataset and network, from line 2, column 1
  std::string expected;
  friend void PrintTo(const Mistake& mistake, std::ostream* out) { *out << mistake.settings; }
};

class BadSweepFile : public ::testing::TestWithParam<Mistake> {};

TEST_P(BadSweepFile, IsReportedInOneLine) {
  const SweepFolder folder;
  EXPECT_EQ(folder.error(SweepFolder::with(GetParam().settings)), GetParam().expected);
}

INSTANTIATE_TEST_SUITE_P(
    Values, BadSweepFile,
    ::testing::ValuesIn(std::vector<Mistake>{
        {"WrongType", R"("epochs": "3")", "s.json:2:11: epochs: got \"3\", want an integer >= 1"},
        {"EpochsZero", R"("epochs": 0)", "s.json:2:11: epochs: got 0, want an integer >= 1"},
        {"EpochsFraction", R"("epochs": 1.5)", "s.json:2:11: epochs: got 1.5, want an integer >= 1"},
        {"EpochsHuge", R"("epochs": 10000000000)",
         "s.json:2:11: epochs: got 10000000000, want an integer >= 1 and <= 1000000000"},
        {"SeedNegative", R"("seed": -1)", "s.json:2:9: seed: got -1, want an integer >= 0"},
        {"LrNegative", R"("params": {"lr": [0.1, -1]})",
         "s.json:2:24: params.lr.1: got -1, want a number > 0"},
        {"LrZero", R"("lr": 0)", "s.json:2:7: lr: got 0, want a number > 0"},
        {"LrRoundsToZero", R"("lr": 1e-400)", "s.json:2:7: lr: got 1e-400, want a number > 0"},
        {"LrNull", R"("lr": null)", "s.json:2:7: lr: got null, want a number > 0"},
        {"BatchSizeZero", R"("params": {"batch_size": [0]})",
         "s.json:2:27: params.batch_size.0: got 0, want an integer >= 1"},
        {"BatchSizeNegative", R"("batch_size": -5)", "s.json:2:15: batch_size: got -5, want an integer >= 1"},
        {"BatchSizeFraction", R"("batch_size": 100.5)",
         "s.json:2:15: batch_size: got 100.5, want an integer >= 1"},
        {"BatchLargerThanTheData", R"("params": {"batch_size": [100, 70000]})",
         "s.json:2:32: params.batch_size.1: got 70000, want at most 60000, the number of training samples"},
        {"ShuffleQuoted", R"("shuffle": "true")",
         "s.json:2:12: shuffle: got \"true\", want true or false without quotes, did you mean \"true\"?"},
        {"ShuffleNumber", R"("shuffle": 1)", "s.json:2:12: shuffle: got 1, want true or false"},
        {"WorkersNegative", R"("num_workers": -1)",
         "s.json:2:16: num_workers: got -1, want an integer >= 0 and <= 1024"},
        {"UnknownDevice", R"("params": {"device": ["cpu", "cdua"]})",
         "s.json:2:30: params.device.1: got \"cdua\", want cpu, cuda, cuda:N, cpu:N (N is a device number "
         "from 0) or auto, did you mean \"cuda\"?"},
        {"ImagesNegative", R"("log": {"images": -1})",
         "s.json:2:19: log.images: got -1, want an integer >= 0 and <= 4096, true or false"},
        {"BatchesBoolean", R"("log": {"batches": true})",
         "s.json:2:20: log.batches: got true, want an integer >= 0"},
        {"DeviceWithoutNumber", R"("device": "cuda:x")",
         "s.json:2:11: device: got \"cuda:x\", want cpu, cuda, cuda:N, cpu:N (N is a device number from 0) "
         "or auto, did you mean \"cuda\"?"},
        {"UnknownLoss", R"("loss": "cross_entorpy")",
         "s.json:2:9: loss: got \"cross_entorpy\", want cross_entropy, mse, l1, smooth_l1 or "
         "bce_with_logits, did you mean "
         "\"cross_entropy\"?"},
        {"LossOfAnotherKind", R"("loss": 3)",
         "s.json:2:9: loss: got 3, want cross_entropy, mse, l1, smooth_l1 or bce_with_logits, or an object "
         "with that \"name\" and arguments"},
        {"LossArgumentRange", R"("loss": {"label_smoothing": 2})",
         "s.json:2:29: loss.label_smoothing: got 2, want a number >= 0 and <= 1"},
        {"LossArgumentUnknown", R"("loss": {"name": "mse", "label_smoothing": 0.1})",
         "s.json:2:25: loss.label_smoothing: mse has no argument \"label_smoothing\", it takes none"},
        {"ConditionOnAnUnknownLoss",
         R"("params": {"loss": ["mse"], "lr": [1]}, "exclude": [{"loss": "mes"}])",
         "s.json:2:62: exclude.0.loss: got \"mes\", want cross_entropy, mse, l1, smooth_l1 or "
         "bce_with_logits, did you mean \"mse\"?"},
        {"UnknownSchedule", R"("schedule": "cosin")",
         "s.json:2:13: schedule: got \"cosin\", want constant, step, cosine, one_cycle or warmup, did you "
         "mean "
         "\"cosine\"?"},
        {"StepWithoutSize", R"("schedule": "step")",
         "s.json:2:13: schedule: step needs \"step_size\", an integer >= 1"},
        {"ScheduleArgumentUnknown", R"("schedule": {"name": "cosine", "t_max": 3})",
         "s.json:2:32: schedule.t_max: cosine has no argument \"t_max\", allowed: T_max, eta_min, did you "
         "mean "
         "\"T_max\"?"},
        {"ScheduleChoice", R"("schedule": {"name": "one_cycle", "anneal_strategy": "linaer"})",
         "s.json:2:54: schedule.anneal_strategy: got \"linaer\", want cos or linear, did you mean "
         "\"linear\"?"},
        {"ScheduleThenOfAnother", R"("schedule": {"name": "cosine", "then": "step"})",
         "s.json:2:32: schedule.then: cosine has no argument \"then\", allowed: T_max, eta_min"},
        {"ScheduleThenUnknown", R"("schedule": {"name": "warmup", "then": "one_cycle"})",
         "s.json:2:40: schedule.then: got \"one_cycle\", want constant, step or cosine"},
        {"ScheduleThenArgument",
         R"("schedule": {"name": "warmup", "then": {"name": "step", "step_size": 0}})",
         "s.json:2:70: schedule.then.step_size: got 0, want an integer >= 1"},
        {"WarmupFromZero", R"("schedule": {"name": "warmup", "start_factor": 0})",
         "s.json:2:13: schedule: start_factor must be > 0"},
        {"ClipNormNegative", R"("clip_norm": -1)", "s.json:2:14: clip_norm: got -1, want a number >= 0"},
        {"ClipNormNull", R"("clip_norm": null)", "s.json:2:14: clip_norm: got null, want a number >= 0"},
        {"PrecisionUnknown", R"("precision": "bfp16")",
         "s.json:2:14: precision: got \"bfp16\", want fp32 or bf16, did you mean \"bf16\"?"},
        {"DeterministicText", R"("deterministic": "no")",
         "s.json:2:18: deterministic: got \"no\", want true or false without quotes"},
        {"PrecisionNumber", R"("params": {"precision": [32]})",
         "s.json:2:26: params.precision.0: got 32, want fp32 or bf16"},
        {"EmptyInit", R"("init": "")", "s.json:2:9: init: got an empty string, want a path"},
        {"ListOutsideOfParams", R"("lr": [0.1, 0.01])",
         "s.json:2:7: lr: got a list of 2, want a number > 0; a list of values to try stands in \"params\""},
        {"RepeatsZero", R"("repeats": 0)", "s.json:2:12: repeats: got 0, want an integer >= 1"},
        {"LogType", R"("log": true)",
         "s.json:2:8: log: got true, want an object with any of: images, image_labels, graph, histograms, "
         "hparams, text, "
         "layout, predictions, batches, validation_batches"},
        {"LogKey", R"("log": {"image": 3})",
         "s.json:2:9: log.image: unknown key \"image\", allowed: images, image_labels, graph, histograms, "
         "hparams, text, "
         "layout, predictions, batches, validation_batches, did you mean \"images\"?"},
        {"OptimizerArgumentRange", R"("optimizer": {"name": "sgd", "momentum": -0.5})",
         "s.json:2:42: optimizer.momentum: got -0.5, want a number >= 0"},
        {"OptimizerArgumentUnknown", R"("optimizer": {"name": "sgd", "momentun": 0.9})",
         "s.json:2:30: optimizer.momentun: sgd has no argument \"momentun\", allowed: momentum, dampening, "
         "weight_decay, nesterov, did you mean \"momentum\"?"},
        {"NesterovWithoutMomentum", R"("optimizer": {"name": "sgd", "nesterov": true})",
         "s.json:2:14: optimizer: nesterov needs momentum > 0 and dampening 0"},
        {"BetasAsNumber", R"("optimizer": {"name": "adam", "betas": 0.9})",
         "s.json:2:40: optimizer.betas: got 0.9, want a pair of numbers >= 0 and <= 0.999999999999"},
    }),
    [](const auto& instance) { return instance.param.name; });

INSTANTIATE_TEST_SUITE_P(
    Axes, BadSweepFile,
    ::testing::ValuesIn(std::vector<Mistake>{
        {"EmptyList", R"("params": {"lr": []})",
         "s.json:2:18: params.lr: got an empty list, want at least one value"},
        {"NoList", R"("params": {"lr": 0.1})",
         "s.json:2:18: params.lr: got 0.1, want a list of values, {\"range\": [first, last, step]}, "
         "{\"linspace\": [first, last, count]} or {\"logspace\": [first, last, count]}; for a search also "
         "{\"uniform\": [lowest, highest]}, log_uniform, int_uniform or log_int_uniform"},
        {"ParamsIsAList", R"("params": [])",
         "s.json:2:11: params: got an empty list, want an object: keys, each with a list of values to try"},
        {"SameValueTwice", R"("params": {"lr": [0.01, 0.1, 1e-2]})",
         "s.json:2:30: params.lr.2: got 1e-2 a second time (the first is at 2:19), want different values"},
        {"OneAndOnePointZero", R"("params": {"lr": [1, 1.0]})",
         "s.json:2:22: params.lr.1: got 1.0 a second time (the first is at 2:19), want different values"},
        {"SameKeyTwice", R"("params": {"momentum": [0], "optimizer.momentum": [0.9]})",
         "s.json:2:29: params.optimizer.momentum: \"optimizer.momentum\" is the same key as \"momentum\", "
         "want one of them"},
        {"NameCannotBeSwept", R"("params": {"name": ["a", "b"]})",
         "s.json:2:12: params.name: \"name\" cannot be swept"},
        {"RepeatsCannotBeSwept", R"("params": {"repeats": [1, 2]})",
         "s.json:2:12: params.repeats: \"repeats\" cannot be swept, it stands at the top of the file"},
        {"UnknownForm", R"("params": {"lr": {"logspce": [1, 2, 3]}})",
         "s.json:2:19: params.lr.logspce: unknown key \"logspce\", allowed: range, linspace, logspace, "
         "uniform, log_uniform, int_uniform, log_int_uniform, did "
         "you mean \"logspace\"?"},
        {"RangeOfTwo", R"("params": {"epochs": {"range": [1, 2]}})",
         "s.json:2:32: params.epochs.range: got a list of 2, want three numbers [first, last, step]"},
        {"StepZero", R"("params": {"epochs": {"range": [1, 2, 0]}})",
         "s.json:2:32: params.epochs.range: the step is 0, want another"},
        {"StepAway", R"("params": {"epochs": {"range": [2, 1, 1]}})",
         "s.json:2:32: params.epochs.range: the step leads away from the last value"},
        {"RangeOfMillions", R"("params": {"epochs": {"range": [1, 1000000000, 1]}})",
         "s.json:2:32: params.epochs.range: these are more than 10000 values"},
        {"CountZero", R"("params": {"lr": {"linspace": [1, 2, 0]}})",
         "s.json:2:31: params.lr.linspace: the count is 0, want an integer >= 1 and <= 10000"},
        {"LogspaceFromZero", R"("params": {"lr": {"logspace": [0, 1, 3]}})",
         "s.json:2:31: params.lr.logspace: the ends of a logspace must be > 0"},
        {"TooManyRuns", R"("params": {"epochs": {"range": [1, 1000, 1]}, "seed": {"range": [1, 1000, 1]}})",
         "s.json:2:11: params: these are 1000000 runs, want at most 100000"},
        {"ZipLengths",
         R"("params": {"lr": [0.1, 0.2], "batch_size": [10, 20, 30]}, "zip": [["lr", "batch_size"]])",
         "s.json:2:67: zip.0: \"lr\" has 2 values and \"batch_size\" has 3, want as many of both"},
        {"ZipNoAxis", R"("params": {"lr": [0.1]}, "zip": [["lr", "seed"]])",
         "s.json:2:41: zip.0.1: \"seed\" is no axis, want one of: lr"},
        {"ZipTwice", R"("params": {"lr": [0.1], "seed": [1]}, "zip": [["lr", "seed"], ["seed", "lr"]])",
         "s.json:2:64: zip.1.0: \"seed\" is zipped twice\ns.json:2:72: zip.1.1: \"lr\" is zipped twice"},
        {"ExcludeUnknownValue", R"("params": {"device": ["cpu"]}, "exclude": [{"device": "cpuu"}])",
         "s.json:2:55: exclude.0.device: got \"cpuu\", want cpu, cuda, cuda:N, cpu:N (N is a device number "
         "from 0) or auto, did you mean \"cpu\"?"},
        {"ExcludeEverything", R"("params": {"lr": [0.1]}, "exclude": [{"lr": 0.1}])",
         "s.json:2:37: exclude: every combination is excluded, want at least one run"},
        {"ExcludeNothing", R"("params": {"lr": [0.1]}, "exclude": [{}])",
         "s.json:2:38: exclude.0: got an empty object, want an object: keys, each with a value or a list of "
         "values"},
        {"WhenNoAxis", R"("params": {"lr": [0.1]}, "when": {"momentum": {"optimizer": "sgd"}})",
         "s.json:2:35: when.momentum: \"momentum\" is no axis, want one of: lr"},
        {"WhenOnItself",
         R"("params": {"lr": [0.1], "seed": [1]}, "when": {"lr": {"seed": 1}, "seed": {"lr": 0.1}})",
         "s.json:2:48: when.lr: this axis depends on itself, want conditions on other keys\n"
         "s.json:2:67: when.seed: this axis depends on itself, want conditions on other keys"},
        {"GridsEmpty", R"("grids": [])",
         "s.json:2:10: grids: got an empty list, want a list of objects, each like \"params\""},
    }),
    [](const auto& instance) { return instance.param.name; });

TEST(BadSweepFile, AnUnknownKeyIsNamedWithAllThatAreAllowedAndTheNearest) {
  const SweepFolder folder;
  EXPECT_EQ(folder.error(SweepFolder::with(R"("epoch": 3)")),
            "s.json:2:1: epoch: unknown key \"epoch\", allowed: name, dataset, network, optimizer, schedule, "
            "loss, clip_norm, epochs, evaluate_first, seed, repeats, "
            "lr, batch_size, shuffle, num_workers, device, precision, deterministic, parallel, accumulate, "
            "stop, checkpoint, init, "
            "log, params, search, slurm, zip, "
            "exclude, when, grids, did you mean \"epochs\"?");
  EXPECT_THAT(folder.error(SweepFolder::with(R"("learning_rate": 3)")), HasSubstr("did you mean \"lr\"?"));
  EXPECT_THAT(folder.error(SweepFolder::with(R"("params": {"batchsize": [3]})")),
              HasSubstr("did you mean \"batch_size\"?"));
  EXPECT_THAT(folder.error(SweepFolder::with(R"("params": {"validation": [3]})")),
              HasSubstr("did you mean \"dataset.validation\"?"));
  EXPECT_THAT(folder.error(SweepFolder::with(R"("params": {"label_smoothing": [0.1]})")),
              HasSubstr("did you mean \"loss.label_smoothing\"?"));
  EXPECT_THAT(folder.error(SweepFolder::with(R"("params": {"gamma": [0.1]})")),
              HasSubstr("did you mean \"schedule.gamma\"?"));
  EXPECT_THAT(folder.error(SweepFolder::with(R"("params": {"out_channels": [3]})")),
              HasSubstr("did you mean \"network.layers.LAYER.out_channels\"?"));
}

TEST(BadSweepFile, UnknownKeysOfRulesAreReportedWhereTheyStand) {
  const SweepFolder folder;
  EXPECT_THAT(
      folder.error(SweepFolder::with(R"("params": {"lr": [0.1], "seed": [1]}, "zip": [["lr", "sed"]])")),
      AllOf(HasSubstr("s.json:2:54: zip.0.1: unknown key \"sed\", allowed: dataset, network, "),
            HasSubstr("did you mean \"seed\"?")));
  EXPECT_THAT(folder.error(SweepFolder::with(R"("params": {"lr": [0.1]}, "exclude": [{"devise": "cpu"}])")),
              AllOf(HasSubstr("s.json:2:39: exclude.0.devise: unknown key \"devise\""),
                    HasSubstr("did you mean \"device\"?")));
}

TEST(BadSweepFile, AllMistakesAreReportedTogetherInTheOrderOfTheFile) {
  const SweepFolder folder;
  EXPECT_EQ(folder.error(SweepFolder::with(
                "\"epochs\": 0,\n\"sed\": 1,\n\"params\": {\"lr\": [0.1, -1], \"batch_size\": []}")),
            "s.json:2:11: epochs: got 0, want an integer >= 1\n"
            "s.json:3:1: sed: unknown key \"sed\", allowed: name, dataset, network, optimizer, schedule, "
            "loss, clip_norm, epochs, evaluate_first, seed, repeats, lr, "
            "batch_size, shuffle, num_workers, device, precision, deterministic, parallel, accumulate, stop, "
            "checkpoint, init, "
            "log, params, search, slurm, zip, "
            "exclude, when, grids, did you "
            "mean \"seed\"?\n"
            "s.json:4:24: params.lr.1: got -1, want a number > 0\n"
            "s.json:4:43: params.batch_size: got an empty list, want at least one value");
}

TEST(BadSweepFile, OneMistakeInManyRunsIsReportedOnce) {
  const SweepFolder folder;
  const std::string error = folder.error(
      SweepFolder::with(R"("optimizer": "adma", "params": {"lr": [0.1, 0.2], "seed": [1, 2, 3]})"));
  EXPECT_EQ(error,
            "s.json:2:14: optimizer: got \"adma\", want sgd, adam, adamw or rmsprop, did you mean \"adam\"?");
}

TEST(BadSweepFile, HundredsOfMistakesAreCounted) {
  const SweepFolder folder;
  std::string settings;
  for (int i = 0; i < 300; ++i)
    settings += (i ? ", " : "") + std::string("\"key") + std::to_string(i) + "\": 1";
  const std::string error = folder.error(SweepFolder::with(settings));
  EXPECT_EQ(std::count(error.begin(), error.end(), '\n'), 20);
  EXPECT_THAT(error, HasSubstr("… and 280 more"));
}

TEST(BadSweepFile, ANameThatCannotBeADirectoryIsRefused) {
  const SweepFolder folder;
  const std::vector<std::pair<std::string, std::string>> names = {
      {R"("")", "want at least one character"},
      {R"("..")", "want a name that does not start with a dot"},
      {R"("../up")", "want a directory name without /"},
      {R"("a/b")", "want a directory name without /"},
      {R"("/tmp")", "want a directory name without /"},
      {R"("a\\b")", "want a directory name without \\"},
      {R"(".hidden")", "want a name that does not start with a dot"},
      {R"("a\u0000b")", "want a name without control characters"},
      {R"("a\nb")", "want a name without control characters"},
      {R"("a\u009b31m")", "want a name without control characters"},
      {R"("a\u202eb")", "marks of writing direction"},
      {R"("a\u200bb")", "characters without a width"},
      {R"("a:b")", "want a directory name without :"},
      {R"("-rf")", "want a name that does not start with '-'"},
      {R"("end.")", "want a name that does not end with a dot or a space"},
      {R"("s.mean")", "want a name that does not end with .mean: the means of repeats"},
      {R"("con")", "some systems keep this name for a device"},
      {R"("LPT1.txt")", "some systems keep this name for a device"},
      {"\"" + std::string(101, 'x') + "\"", "it has 101 bytes, want at most 100"},
      {"7", "want a string: a directory name"},
  };
  for (const auto& [name, expected] : names) {
    const std::string error = folder.error(SweepFolder::with("\"name\": " + name));
    EXPECT_THAT(error, HasSubstr("s.json:2:9: name: got ")) << name;
    EXPECT_THAT(error, HasSubstr(expected)) << name;
  }
}

TEST(BadSweepFile, TheFilesOwnNameIsHeldToTheSameRules) {
  const SweepFolder folder;
  const auto file = folder.write("con.json", SweepFolder::with("\"epochs\": 1"));
  try {
    load_sweep(file);
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_EQ(folder.without_folder(error.what()),
              "con.json:1:1: the file's name \"con\" cannot name a directory, want a \"name\"");
  }
}

TEST(BadSweepFile, DataAndNetworkMustBeGiven) {
  const SweepFolder folder;
  EXPECT_EQ(
      folder.error("{}"),
      "s.json:1:1: \"dataset\" is missing, want fashion-mnist, mnist, cifar10 or cifar100 or an object\n"
      "s.json:1:1: \"network\" is missing, want the name of a network file, or an object");
}

TEST(BadSweepFile, ADocumentThatIsNoObjectIsRefused) {
  const SweepFolder folder;
  EXPECT_THAT(folder.error("[1]"), HasSubstr("s.json:1:1: got a list of 1, want an object"));
}

TEST(BadSweepFile, DatasetsAreChecked) {
  const SweepFolder folder;
  const auto error = [&](const std::string& dataset) {
    return folder.error("{\"network\": \"net.json\", \"dataset\": " + dataset + "}");
  };
  EXPECT_EQ(error("\"fasion-mnist\""),
            "s.json:1:36: dataset: got \"fasion-mnist\", want fashion-mnist, mnist, cifar10 or cifar100, or "
            "an object with "
            "\"name\" and \"path\" "
            "for another, did you mean \"fashion-mnist\"?");
  EXPECT_THAT(error("[]"), HasSubstr("s.json:1:36: dataset: got an empty list, want fashion-mnist, mnist, "
                                     "cifar10 or cifar100, or an object"));
  EXPECT_THAT(error("{}"), HasSubstr("\"name\" is missing"));
  EXPECT_THAT(error(R"({"name": "mnist", "validation": 1.0})"),
              HasSubstr("dataset.validation: got 1.0, want a count (an integer >= 0) or a fraction (a number "
                        ">= 0 and < 1)"));
  EXPECT_THAT(error(R"({"name": "mnist", "validation": -1})"),
              HasSubstr("dataset.validation: got -1, want a count"));
  EXPECT_THAT(error(R"({"name": "mnist", "validation": 60000})"),
              HasSubstr("dataset.validation: this leaves nothing to train on"));
  EXPECT_THAT(error(R"({"name": "mnist", "valdation": 1})"), HasSubstr("did you mean \"validation\"?"));
  EXPECT_THAT(
      error(R"({"name": "mnist", "format": "imagefolder"})"),
      HasSubstr("dataset.format: got \"imagefolder\", want idx, cifar10, cifar100, npy, npz, safetensors, "
                "image_folder, csv or tsv, did you mean \"image_folder\"?"));
  EXPECT_THAT(error(R"({"name": "mnist", "split": "last"})"),
              HasSubstr("dataset.split: got \"last\", want auto, end, random or stratified"));
  EXPECT_THAT(error(R"({"name": "mnist", "resize": [0, 50]})"),
              HasSubstr("dataset.resize: got a list of 2, want an integer, or a pair of integers, >= 1"));
  EXPECT_THAT(error(R"({"name": "mnist", "label": ""})"),
              HasSubstr("dataset.label: got an empty string, want the name of a column or an array"));
  EXPECT_THAT(error(R"({"name": "mnist", "target": ["a", ""]})"),
              HasSubstr("dataset.target.1: got an empty string, want the name of a column or an array"));
  EXPECT_THAT(error(R"({"name": "mnist", "ignore": []})"),
              HasSubstr("want the name of a column, or a list of"));
  EXPECT_THAT(error(R"({"name": "mnist", "label": "a", "target": "b"})"),
              HasSubstr("dataset.target: samples have either a \"label\" or a \"target\", not both"));
  EXPECT_THAT(error(R"({"name": "mnist", "missing": "median"})"),
              HasSubstr("dataset.missing: got \"median\", want error or mean"));
  EXPECT_THAT(error(R"({"name": "mnist", "categories": "onehot"})"), HasSubstr("did you mean \"one_hot\"?"));
  EXPECT_THAT(error(R"({"name": "mnist", "normalize": "all"})"),
              HasSubstr("dataset.normalize: got \"all\", want train, none, or an object with"));
  EXPECT_THAT(error(R"({"name": "mnist", "validation": 59950})"),
              HasSubstr("batch_size: got 100 (the default), want at most 50"));
  EXPECT_THAT(error(R"({"name": "mnist", "normalize": {"mean": [0.5]}})"),
              HasSubstr("\"std\" is missing, want both"));
  EXPECT_THAT(error(R"({"name": "mnist", "normalize": {"mean": [0.5], "std": [0]}})"),
              HasSubstr("want a list of numbers > 0"));
  EXPECT_THAT(error(R"({"name": "mnist", "normalize": {"mean": [0, 0, 0], "std": [1, 1, 1]}})"),
              HasSubstr("dataset.normalize: got 3 means, want 1, one per channel"));
}

TEST(BadSweepFile, AFileThatCannotBeReadIsADataError) {
  const SweepFolder folder;
  EXPECT_THROW(load_sweep(folder.path() / "missing.json"), DataError);
  EXPECT_THROW(load_sweep(folder.path()), DataError);
  EXPECT_THROW(load_sweep("/dev/zero"), DataError);
}

TEST(BadSweepFile, CudaDevicesAreCountedFromZero) {
  const SweepFolder folder;
  const std::string one = SweepFolder::with("\"device\": \"cuda:1\"");
  LoadOptions machine;
  machine.cuda_device_count = 1;
  EXPECT_THAT(folder.error(one, {}, machine),
              HasSubstr("but this machine has one CUDA device, want cuda or cuda:0"));
  machine.cuda_device_count = 2;
  EXPECT_EQ(folder.load(one, {}, machine).runs[0].device, "cuda:1");
  machine.cuda_device_count = 0;  // A file from another machine: its run is skipped, which is no mistake.
  EXPECT_EQ(folder.load(SweepFolder::with("\"device\": \"cuda:0\""), {}, machine).runs[0].device, "cuda:0");
  EXPECT_EQ(folder.load(one, {}, machine).runs[0].device, "cuda:1");
  EXPECT_EQ(folder.load(SweepFolder::with("\"device\": \"cuda\""), {}, machine).runs[0].device, "cuda");
}

}  // namespace
}  // namespace sweep
