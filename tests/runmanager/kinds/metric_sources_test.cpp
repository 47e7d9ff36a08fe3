// The metrics of a person's program, as its lines and its events have them.
#include "runmanager/kinds/command/metric_sources.h"

#include <fmt/format.h>
#include <malloc.h>

#include "core/base/child.h"
#include "core/base/file.h"
#include "runmanager/kinds/command/command_words.h"
#include "runmanager/kinds/gpu_pool.h"
#include "runmanager/records/provenance.h"
#include "tbwriter/summary_writer.h"
#include "tests/support/test.h"

namespace sweep::metric_sources_test {

// What programs report, and what was read of it: "step name=value …", or "attempt N", with "; " between them.
struct Metrics {
  explicit Metrics(std::vector<std::pair<std::string, std::string>> expressions = {})
      : spec{.words = {}, .cwd = {}, .inputs = {}, .metrics = std::move(expressions)} {}

  test::TemporaryDirectory folder;
  CommandSpec spec;
  MetricSources sources{folder.path(), spec};
  std::string found;

  void write(std::string_view text) {
    const FileDescriptor out = open_output_file(folder / kMetricsFile, OutputMode::kAppend);
    write_all(out.get(), text, kMetricsFile);
    poll();
  }
  void poll() {
    sources.poll_file([this](const MetricReport& report) {
      std::string text = report.step ? std::to_string(*report.step) : "-";
      if (report.attempt > 0) text = fmt::format("attempt {}", report.attempt);
      for (const auto& [metric, value] : report.values) text += fmt::format(" {}={:g}", metric->key, value);
      found += (found.empty() ? "" : "; ") + text;
    });
  }
  // The only one that there is; "" if there is none.
  std::string problem() {
    const auto problems = sources.take_problems();
    return problems.empty() ? "" : problems.begin()->second;
  }
};

// A problem that begins like this, or none.
testing::Matcher<std::string> begins(const char* problem) {
  return *problem == '\0' ? testing::Matcher<std::string>(IsEmpty()) : StartsWith(problem);
}

TEST(MetricFile, ReadsReportsAndTellsTheFirstLineThatIsNone) {
  const struct {
    const char *lines, *found, *problem = "";
  } rows[] = {
      {"{\"step\": 3, \"loss\": 0.5, \"note\": \"x\"}\r\n{\"loss\": 1}\n", "3 loss=0.5; - loss=1"},
      // As Python writes them.
      {"{\"epoch\": 2, \"loss\": NaN}\n", "2 loss=nan"},
      {"{\"NaN\\\"\": \"-Infinity\", \"b\": -Infinity, \"c\": Infinity}", "- NaN\"=-inf b=-inf c=inf"},
      // As Hugging Face's Trainer and Lightning report: the epoch is a fraction, next to a step.
      {"{\"epoch\": 0.25, \"step\": 3, \"loss\": 1}\n{\"epoch\": 0.5, \"loss\": 2}", "3 loss=1; - loss=2"},
      {"{\"step\": -1, \"loss\": 1}", "", "its step, -1, is no whole number"},
      {"{\"step\": 2.5, \"loss\": 1}", "", "its step, 2.5, is no whole number"},
      {"{\"step\": 1e16, \"loss\": 1}", "", "its step, 1e+16, is no whole"},
      {"loss=1", "", "it is no object of JSON: loss=1"},
      {"{\"step\": 2, \"loss\": nan}", "", "it is no object of JSON: {\"step\": 2, \"loss\": nan}"},
      {"{\"step\": 4, \"loss\": 1}\n{\"step\": 5, \"lo", "4 loss=1", "it is no object of JSON: {\"step\": 5"},
      {"{\"step\": 1}", "", "it has no number that is a metric"}};
  for (const auto& row : rows) {
    Metrics metrics;
    metrics.write(std::string(row.lines) + "\n");
    if (*row.problem != '\0') metrics.write("[]\n\n");
    EXPECT_EQ(metrics.found, row.found) << row.lines;
    EXPECT_THAT(metrics.problem(), begins(row.problem));
    EXPECT_EQ(metrics.problem(), "");
  }
}

TEST(MetricFile, ALineWithoutAnEndCountsOnceItIsEnded) {
  Metrics metrics;
  metrics.write("{\"loss\": 1}");
  EXPECT_EQ(metrics.found, "") << "more may come";
  metrics.sources.end_attempt();
  metrics.poll();
  metrics.sources.end_attempt();
  metrics.sources.begin_attempt(2);
  metrics.poll();
  EXPECT_EQ(metrics.found, "- loss=1; attempt 2");
}

TEST(MetricFile, ReadsAllOfAFileThatTheProgramHasReplaced) {
  Metrics metrics;
  metrics.sources.begin_attempt(1);
  metrics.write("{\"step\": 1, \"loss\": 1}\n{\"step\": 2");
  for (const int step : {3, 4}) {
    write_file_atomically(metrics.folder / kMetricsFile, fmt::format("{{\"step\": {}, \"loss\": 7}}\n", step),
                          Survives::kKill);
    metrics.poll();
  }
  metrics.write("{\"step\": 5, \"loss\": 9}\n");
  EXPECT_EQ(metrics.found, "1 loss=1; 3 loss=7; 4 loss=7; 5 loss=9");
}

TEST(MetricFile, IsWrittenAgainIfAProgramHasReplacedAndRemovedIt) {
  Metrics metrics{{{"accuracy", "acc=(.+)"}}};
  metrics.sources.begin_attempt(1);
  write_file_atomically(metrics.folder / kMetricsFile, "", Survives::kKill);
  metrics.poll();
  std::filesystem::remove(metrics.folder / kMetricsFile);
  metrics.sources.restore(1, {{3, EpochRecord(3, {{"accuracy", 3}})}});
  EXPECT_THAT(read_file(metrics.folder / kMetricsFile), HasSubstr("\"accuracy\":3"));
}

TEST(MetricFile, ReadsLinesOfThousandsOfMetrics) {
  Metrics metrics;
  std::string line = "{\"loss\": 7";
  for (int i = 0; i < 5000; ++i) line += fmt::format(", \"layer{}/gradient_norm\": 0.125", i);
  metrics.write(line + "}\n");
  EXPECT_THAT(metrics.found, AllOf(StartsWith("- loss=7 "), EndsWith("layer4999/gradient_norm=0.125")));
}

TEST(OutputMetrics, OfALineThatIsOverwrittenTheLastValueCountsAndWhatOnlyBeginsLikeANumberDoesNot) {
  constexpr const char* kPlain = "loss=([0-9.]+)";
  constexpr const char* kSteps = "epoch (?<step>\\S+) loss=(\\S+)";
  const struct {
    const char *loss, *output, *found, *problem = "";
  } rows[] = {
      {kPlain, "1/2 loss=3\r2/2 loss=2 acc=0.5\r          \rdone\r\nloss=1", "1 loss=2; 1 acc=0.5; 2 loss=1"},
      {kPlain, "loss=3\rloss=2\r", "1 loss=2"},
      {kSteps, "epoch 3 loss=+4e0", "3 loss=4"},
      {kSteps, "epoch -1 loss=1\nepoch 4 loss=x", "", "\"loss\": its step, -1, is no whole number"},
      {kSteps, "epoch 1.5 loss=1\nepoch 4 loss=x", "", "\"loss\": its step, 1.5, is no whole number"},
      {kSteps, "epoch 1 loss=1,5\nepoch 3 loss=4", "3 loss=4", "\"loss\": its value, 1,5, is no number"},
      {kSteps, "epoch 1 loss=0x10", "", "\"loss\": its value, 0x10, is no number"}};
  for (const auto& row : rows) {
    Metrics metrics({{"loss", row.loss}, {"acc", "acc=([0-9.]+)"}});
    for (const char* c = row.output; *c != '\0'; ++c) metrics.sources.add_output({c, 1});
    metrics.sources.end_attempt();
    metrics.poll();
    EXPECT_EQ(metrics.found, row.found) << row.output;
    EXPECT_THAT(metrics.problem(), begins(row.problem));
  }
}

std::size_t used_memory() { return ::mallinfo2().uordblks; }

// 300,000 events in memory, a report each, took 92 MB.
TEST(ProgramEvents, AreReadInTheOrderOfTimeWithoutKeepingThem) {
  Metrics metrics;
  constexpr int kSteps = 50000;
  for (const std::string name : {"a", "b"}) {
    tbwriter::SummaryWriter writer(metrics.folder / name, {});
    for (int step = 0; step < kSteps; ++step) writer.add_scalar(name, 1, step);
    writer.close();
  }
  const std::size_t before = used_memory();
  std::size_t most = 0, count = 0;
  double last = 0;
  metrics.sources.poll_events([&](const MetricReport& report) {
    if (count++ % 1000 == 0) most = std::max(most, used_memory());
    EXPECT_GE(report.wall_time, last);
    last = report.wall_time;
  });
  EXPECT_EQ(count, std::size_t{2} * kSteps);
  EXPECT_LT(most - before, std::size_t{4} << 20);
}

std::size_t files_below(const fs::path& folder) {
  return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

TEST(ProgramEvents, OfAnyNumberOfFilesAreFollowedWithoutKeepingThemOpen) {
  Metrics metrics;
  const std::size_t open_before = files_below("/proc/self/fd");
  std::vector<double> values;
  const auto poll = [&] {
    metrics.sources.end_attempt();  // Looks for new files, whatever it takes.
    metrics.sources.poll_events(
        [&](const MetricReport& report) { values.push_back(report.values[0].second); });
  };
  for (const int step : {1, 2, 3}) {
    for (const char* name : {"a", "b"}) {
      tbwriter::SummaryWriter writer(metrics.folder / name, {});
      writer.add_scalar("loss", step, step);
    }
    for (const auto& file : fs::recursive_directory_iterator(metrics.folder.path())) {
      if (step == 1 && file.is_regular_file()) fs::resize_file(file, file.file_size() - 1);
    }
    poll();
  }
  EXPECT_EQ(files_below("/proc/self/fd"), open_before);
  EXPECT_THAT(values, ElementsAre(2, 2, 3, 3));
}

// A data set, or thousands of checkpoints.
TEST(ProgramEvents, AreNotLookedForAllTheTimeAmongManyOtherFiles) {
  Metrics metrics;
  for (int i = 0; i < 3000; ++i) std::ofstream(metrics.folder / std::to_string(i)) << "";
  const auto seconds_of = [&](int polls) {
    const double begin = steady_seconds();
    for (int i = 0; i < polls; ++i) metrics.sources.poll_events([](const MetricReport&) {});
    return steady_seconds() - begin;
  };
  const double first = seconds_of(1);
  EXPECT_LT(seconds_of(100), 30 * first);
  tbwriter::SummaryWriter(metrics.folder / "late", {}).add_scalar("loss", 1, 1);
  metrics.sources.end_attempt();
  int found = 0;
  metrics.sources.poll_events([&found](const MetricReport&) { ++found; });
  EXPECT_EQ(found, 1) << "at the end";
}

TEST(EventNames, KeepTheSubdirectoriesOfKerasAndAddScalarsApart) {
  const struct {
    const char *directory, *tag, *metric;
  } rows[] = {{"train", "epoch_loss", "loss"},
              {"validation", "epoch_loss", "validation_loss"},
              {"val", "epoch_auc", "validation_epoch_auc"},
              {"test", "loss", "test_loss"},
              {"test", "acc", "test_accuracy"},
              {"train", "batch_loss", ""},  // Its steps are batches.
              {"loss_val", "loss", "loss_val"},
              {"a_b_c", "a/b", "a/b_c"},
              {"a/b/c", "a/b", "a/b_c"},                        // as tensorboardX
              {"my loss/dev: 1", "my_loss", "my_loss_dev: 1"},  // The tag had a blank.
              {"my loss_dev", "my_loss", "my_loss_dev"},
              {"my-loss/dev", "my_loss", "my_loss"},  // Tags may have hyphens.
              {"version_0", "loss", "loss"}};
  for (const auto& row : rows) EXPECT_EQ(metric_in(fs::path("run") / row.directory, row.tag), row.metric);
}

// The words, or the text for a shell, with "|" between them.
std::string words_of(std::vector<std::string> words, const Params& params, bool shell = false,
                     const nlohmann::ordered_json& own = {}) {
  RunConfig config;
  config.params = params;
  config.resolved["params"] = own;
  config.repeat = 2;
  config.command = std::make_shared<const CommandSpec>(
      CommandSpec{.words = std::move(words), .shell = shell, .cwd = {}, .inputs = {}, .metrics = {}});
  words = command_words({.config = config, .run_directory = "/run"});
  return shell ? words.back() : fmt::format("{}", fmt::join(words, "|"));
}

TEST(CommandWords, HaveTheValuesOfTheRunsParameters) {
  const Params odd = {{"+opt.lr", 0.1}, {"a b", std::int64_t{2}}, {"\u00fc", std::string("x")}, {"b}", true}};
  EXPECT_EQ(words_of({"{+opt.lr}", "--n={a b}", "{\u00fc}}", "{b}}", "{{a b}}", "${a b}", "{a  b}",
                      "{print $1}", "{"},
                     odd),
            "0.1|--n=2|x}|true|{a b}|${a b}|{a  b}|{print $1}|{");
  EXPECT_EQ(words_of({"echo {a b} '{print $1}'"}, odd, true), "echo '2' '{print $1}'");
  // A word whose parameter the run lacks is left out, also for a shell.
  const Params some = {{"lr", 0.5}};
  EXPECT_EQ(words_of({"echo", "--m={m}", "+m={+m}", "{lr}"}, some), "echo|0.5");
  EXPECT_EQ(words_of({"echo --m={m} --lr={lr}"}, some, true), "echo  --lr='0.5'");
  EXPECT_EQ(words_of({"a --m={m}; b {lr}>'x y'{m} && c \"d {m}\"|e \\ {m}"}, some, true),
            "a ; b '0.5'> && c |e ");
  // The seed of a repeat is its own, also if it is a parameter.
  EXPECT_EQ(words_of({"{seed}", "{flags}", "{overrides}"},
                     {{"seed", std::int64_t{5}}, {"repeat", std::int64_t{2}}}),
            "7|--seed=7|seed=7");
  EXPECT_EQ(words_of({"{seed}"}, {{"repeat", std::int64_t{2}}}), "2");
  // A dollar sign that is escaped, or a value's own, begins no command.
  EXPECT_EQ(words_of({"echo \"\\$(a\" {b} \"{c}(\" {b}"},
                     {{"b", std::string("x y")}, {"c", std::string("a$")}}, true),
            "echo \"\\$(a\" 'x y' \"a\\$(\" 'x y'");
  // The number of a repeat is no parameter, unless the program has one of that name.
  EXPECT_EQ(words_of({"{flags}"}, {{"repeat", std::int64_t{1}}}, false, {{"repeat", 1}}), "--repeat=1");
}

TEST(CommandWords, AValueIsQuotedAlsoWithinQuotesOfAShellsText) {
  const std::string value = "it's; `false` \"$x\\";
  const std::pair<const char*, std::string> words[] = {
      {"'{tag}'", value},
      {"{tag}", value},
      {"'a {tag}'", "a " + value},
      {"'{lr}'", "0.5"},
      {"'python3 {flags}'", "python3 --tag=" + value + " --lr=0.5"},
      {"\"{tag}/b\"", value + "/b"},
      {"\"$(printf %s {tag})\"{tag}", value + value},
      {"\"$( (printf '%s)' {tag}) ) {tag}\"", value + ") " + value},
      {"\"`printf %s {lr}` {tag}\"", "0.5 " + value},
      {"\"( {tag}\"", "( " + value}};
  for (const auto& [word, wanted] : words) {
    const std::string text =
        words_of({std::string("printf %s ") + word}, {{"tag", value}, {"lr", 0.5}}, true);
    EXPECT_EQ(run_command({"/bin/sh", "-c", text}, [] { return true; }).out, wanted) << text;
  }
}

// Which GPUs programs see, and which of them each run has.

TEST(VisibleGpus, AreThoseOfTheVariableUpToTheFirstThatIsNone) {
  EXPECT_THAT(visible_gpus("3,1"), ElementsAre("3", "1"));
  EXPECT_THAT(visible_gpus("GPU-8f, MIG-1/2"), ElementsAre("GPU-8f", "MIG-1/2"));
  EXPECT_THAT(visible_gpus("0,-1,2"), ElementsAre("0"));
  EXPECT_THAT(visible_gpus("2,2"), ElementsAre("2"));
  for (const char* none : {"", "-1", "NoDevFiles", ",", "none", "all", "[0,1]", "cuda:0"})
    EXPECT_THAT(visible_gpus(none), IsEmpty()) << none;
}

TEST(VisibleGpus, AreCountedByTheDriversFilesWithoutTheVariable) {
  const test::TemporaryDirectory root;
  EXPECT_THAT(visible_gpus(nullptr, root.path()), IsEmpty());
  fs::create_directories(root.path() / "dev");
  for (const char* name : {"nvidia0", "nvidia1", "nvidiactl", "nvidia-uvm", "null"})
    std::ofstream(root.path() / "dev" / name) << "";
  EXPECT_THAT(visible_gpus(nullptr, root.path()), ElementsAre("0", "1"));
  for (const char* name : {"0000:01:00.0", "0000:41:00.0", "0000:81:00.0"})
    fs::create_directories(root.path() / "proc/driver/nvidia/gpus" / name);
  EXPECT_THAT(visible_gpus(nullptr, root.path()), ElementsAre("0", "1", "2"));
}

TEST(GpuPool, GivesNoGpuToTwoRunsUnlessAskedAndFillsAllBeforeRunsShareOne) {
  GpuPool pairs({"a", "b", "c"}, 2), shared({"a", "b"}, 1, 2);
  EXPECT_THAT(pairs.max_runs(), Optional(1U));
  EXPECT_THAT(shared.max_runs(), Optional(4U));
  for (int round = 0; round < 2; ++round) {
    ASSERT_TRUE(pairs.has_free());
    const auto gpus = pairs.take();
    EXPECT_THAT(gpus, ElementsAre("a", "b"));
    EXPECT_FALSE(pairs.has_free());
    pairs.give_back(gpus);
  }
  for (const char* gpu : {"a", "b", "a", "b"}) {
    ASSERT_TRUE(shared.has_free());
    EXPECT_THAT(shared.take(), ElementsAre(gpu));
  }
  EXPECT_FALSE(shared.has_free());
}

TEST(GpuPool, SaysWhatIsMissing) {
  EXPECT_EQ(GpuPool({"a", "b"}, 2).problem(), std::nullopt);
  EXPECT_EQ(GpuPool().problem(), std::nullopt);
  EXPECT_THAT(GpuPool({"a"}, 2).problem(), Optional(HasSubstr("2, but programs see only 1 here (a)")));
  EXPECT_THAT(GpuPool({}, 1).problem(), Optional(HasSubstr("programs see none here")));
}

}  // namespace sweep::metric_sources_test
