// Every mistake in a sweep file is reported with its location, what was found and what is allowed, before
// anything trains.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <algorithm>

#include "core/base/file.h"
#include "tests/support/reference_data.h"
#include "tests/support/sweep_folder.h"

namespace sweep {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::SweepFolder;

// A row of bad_sweeps.json: settings after a good data set and network, from line 2, column 1.
TEST(BadSweepFile, EveryMistakeIsReportedWithItsPlaceAndWhatIsAllowed) {
  const SweepFolder folder;
  const auto rows = nlohmann::json::parse(read_file(test::reference_path("bad_sweeps.json")));
  EXPECT_GE(rows.size(), 84u);
  for (const nlohmann::json& row : rows)
    EXPECT_EQ(folder.error(SweepFolder::with(row.at("settings"))), row.at("message")) << row.at("name");
}

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
  EXPECT_THAT(error(R"({"name": "mnist", "normalize": {"mean": [0.5]}})"),
              HasSubstr("\"std\" is missing, want both"));
  EXPECT_THAT(error(R"({"name": "mnist", "normalize": {"mean": [0.5], "std": [0]}})"),
              HasSubstr("want a list of numbers > 0"));
  EXPECT_THAT(error(R"({"name": "mnist", "normalize": {"mean": [0, 0, 0], "std": [1, 1, 1]}})"),
              HasSubstr("dataset.normalize: got 3 means, want 1, one per channel"));
}

TEST(BadSweepFile, OnlyABatchSizeThatWasGivenIsRefusedForASmallSet) {
  const SweepFolder folder;
  const auto file = [](const std::string& more) {
    return R"({"network": "net.json", "dataset": {"name": "mnist", "validation": 59902})" + more + "}";
  };
  EXPECT_EQ(folder.load(file("")).runs.size(), 1u);
  EXPECT_THAT(folder.error(file(R"(, "batch_size": 100)")),
              HasSubstr("batch_size: got 100, want at most 98"));
}

TEST(BadSweepFile, ANetworkWithoutWeightsIsNotTrained) {
  const SweepFolder folder;
  for (const char* layers : {R"([{"type": "flatten"}])", R"([{"type": "flatten"}, {"type": "relu"}])"}) {
    EXPECT_THAT(folder.error(fmt::format(R"({{"dataset": "mnist", "network": {{"layers": {}}}}})", layers)),
                HasSubstr("s.json:1:33: network: no layer has weights, so there is nothing to train"));
  }
}

TEST(BadSweepFile, LongKeysAreCutAndControlCharactersEscapedInMessages) {
  const SweepFolder folder;
  const std::string key(900'000, 'k');
  for (const std::string& settings :
       {fmt::format(R"("{}": 1)", key), fmt::format(R"("params": {{"{}": [1]}})", key),
        fmt::format(R"("log": {{"{}": 1}})", key), fmt::format(R"("optimizer": {{"{}": 1}})", key),
        fmt::format(R"("exclude": [{{"{}": 1}}])", key)}) {
    const std::string message = folder.error(SweepFolder::with(settings));
    EXPECT_LT(message.size(), 2000u);
    EXPECT_THAT(message, HasSubstr("kkk…"));
  }
  EXPECT_LT(folder.error(SweepFolder::with(R"("lr": 1)"), {key + "=1"}).size(), 2000u);
  LoadOptions options;
  options.epochs = key;
  EXPECT_LT(folder.error(SweepFolder::with(R"("lr": 1)"), {}, options).size(), 2000u);
  EXPECT_THAT(folder.error(SweepFolder::with("\"a\\u001b[31m\": 1")),
              HasSubstr("s.json:2:1: a\\u001b[31m: "));
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
