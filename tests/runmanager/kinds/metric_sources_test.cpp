// The metrics of a person's program, as its lines and its events have them.
#include "runmanager/kinds/command/metric_sources.h"

#include <fmt/format.h>
#include <malloc.h>

#include "core/base/child.h"
#include "core/base/file.h"
#include "runmanager/kinds/command/command_words.h"
#include "runmanager/kinds/command/event_names.h"
#include "runmanager/kinds/gpu_pool.h"
#include "runmanager/records/provenance.h"
#include "tbwriter/summary_writer.h"
#include "tests/support/test.h"

namespace sweep::metric_sources_test {

// What programs report, and what was read of it: "step name=value …", or "attempt N".
struct Metrics {
  test::TemporaryDirectory folder;
  MetricSources sources{folder.path(), {}};
  std::vector<std::string> found;

  void write(std::string_view text) {
    const FileDescriptor out = open_output_file(folder / kMetricsFile, OutputMode::kAppend);
    write_all(out.get(), text, kMetricsFile);
    poll();
  }
  void poll() {
    sources.poll_file([this](const MetricReport& report) { use(report); },
                      [this](int attempt) { found.push_back(fmt::format("attempt {}", attempt)); });
  }
  void use(const MetricReport& report) {
    std::string text = report.step ? std::to_string(*report.step) : "-";
    for (const auto& [metric, value] : report.values) text += fmt::format(" {}={:g}", metric->key, value);
    found.push_back(text);
  }
};

// The only problem that there is; "" if there is none.
std::string problem_of(MetricSources& sources) {
  const auto problems = sources.take_problems();
  return problems.empty() ? "" : problems.begin()->second;
}

TEST(MetricFile, ReadsReportsWithAStepAnEpochOrNeither) {
  Metrics metrics;
  metrics.write(
      "{\"step\": 3, \"loss\": 0.5, \"note\": \"x\"}\r\n{\"epoch\": 2, \"loss\": NaN}\n{\"loss\": 1}\n");
  EXPECT_THAT(metrics.found, ElementsAre("3 loss=0.5", "2 loss=nan", "- loss=1"));
  EXPECT_EQ(problem_of(metrics.sources), "");
}

// As Hugging Face's Trainer and Lightning report: the epoch is a fraction, next to a step.
TEST(MetricFile, AnEpochNextToAStepIsNoMetricAndAFractionNoStep) {
  Metrics metrics;
  metrics.write("{\"step\": 3, \"epoch\": 0.25, \"loss\": 1}\n{\"epoch\": 0.5, \"loss\": 2}\n");
  EXPECT_THAT(metrics.found, ElementsAre("3 loss=1", "- loss=2"));
}

TEST(MetricFile, LeavesOutWhatIsNoReportAndTellsTheFirst) {
  for (const auto& [line, problem] :
       {std::pair("{\"step\": -1, \"loss\": 1}", "its step, -1, is no whole number"),
        std::pair("{\"step\": 2.5, \"loss\": 1}", "its step, 2.5, is no whole number"),
        std::pair("{\"step\": 1e16, \"loss\": 1}", "its step, 1e+16, is no whole"),
        std::pair("loss=1", "it is no object of JSON: loss=1"),
        std::pair("{\"step\": 1}", "it has no number that is a metric")}) {
    Metrics metrics;
    metrics.write(std::string(line) + "\n");
    metrics.write("[]\n\n");
    EXPECT_THAT(metrics.found, IsEmpty()) << line;
    EXPECT_THAT(problem_of(metrics.sources), HasSubstr(problem));
    EXPECT_EQ(problem_of(metrics.sources), "");
  }
}

TEST(MetricFile, ALineWithoutAnEndCountsOnceItIsEnded) {
  Metrics metrics;
  metrics.write("{\"loss\": 1}");
  EXPECT_THAT(metrics.found, IsEmpty()) << "more may come";
  metrics.sources.end_attempt();
  metrics.poll();
  metrics.sources.end_attempt();
  metrics.sources.begin_attempt(2);
  metrics.poll();
  EXPECT_THAT(metrics.found, ElementsAre("- loss=1", "attempt 2"));
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
  EXPECT_THAT(metrics.found, ElementsAre("1 loss=1", "3 loss=7", "4 loss=7", "5 loss=9"));
}

TEST(MetricFile, ReadsLinesOfThousandsOfMetrics) {
  Metrics metrics;
  std::string line = "{\"loss\": 7";
  for (int i = 0; i < 5000; ++i) line += fmt::format(", \"layer{}/gradient_norm\": 0.125", i);
  metrics.write(line + "}\n");
  ASSERT_EQ(metrics.found.size(), 1u);
  EXPECT_THAT(metrics.found[0], HasSubstr("layer4999/gradient_norm=0.125"));
}

// The lines of kMetricsFile that `text` makes, which comes byte by byte.
std::string lines_of_output(const CommandSpec& spec, std::string_view text, std::string* problem = nullptr) {
  const test::TemporaryDirectory folder;
  MetricSources sources(folder.path(), spec);
  for (const char c : text) sources.add_output({&c, 1});
  sources.end_attempt();
  if (problem != nullptr) *problem = problem_of(sources);
  return read_file(folder / kMetricsFile);
}

TEST(OutputMetrics, OfALineThatIsOverwrittenTheLastValueCounts) {
  CommandSpec spec;
  spec.metrics = {{"loss", "loss=([0-9.]+)"}, {"acc", "acc=([0-9.]+)"}};
  EXPECT_EQ(lines_of_output(spec, "1/2 loss=3\r2/2 loss=2 acc=0.5\r          \rdone\r\nloss=1"),
            "{\"step\":1,\"loss\":2}\n{\"step\":1,\"acc\":0.5}\n{\"step\":2,\"loss\":1}\n");
  EXPECT_EQ(lines_of_output(spec, "loss=3\rloss=2\r"), "{\"step\":1,\"loss\":2}\n");
}

TEST(OutputMetrics, LeavesOutFractionsOfStepsAndWhatOnlyBeginsLikeANumberAndTellsTheFirst) {
  CommandSpec spec;
  spec.metrics = {{"loss", "epoch (?<step>\\S+) loss=(\\S+)"}};
  for (const auto& [line, problem] : {std::pair("epoch -1 loss=1", "its step, -1, is no whole number"),
                                      std::pair("epoch 1.5 loss=1", "its step, 1.5, is no whole number"),
                                      std::pair("epoch 1 loss=1,5", "its value, 1,5, is no number"),
                                      std::pair("epoch 1 loss=0x10", "its value, 0x10, is no number")}) {
    std::string told;
    EXPECT_EQ(lines_of_output(spec, std::string(line) + "\nepoch 3 loss=+4e0\nepoch 4 loss=x\n", &told),
              "{\"step\":3,\"loss\":4}\n")
        << line;
    EXPECT_THAT(told, HasSubstr(problem));
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
  EXPECT_EQ(metric_in("run/train", "epoch_loss"), "loss");
  EXPECT_EQ(metric_in("run/validation", "epoch_loss"), "validation_loss");
  EXPECT_EQ(metric_in("run/val", "epoch_auc"), "validation_epoch_auc");
  EXPECT_EQ(metric_in("run/test", "loss"), "test_loss");
  EXPECT_EQ(metric_in("run/test", "acc"), "test_accuracy");
  EXPECT_EQ(metric_in("run/train", "batch_loss"), "") << "its steps are batches";
  EXPECT_EQ(metric_in("run/loss_val", "loss"), "loss_val");
  EXPECT_EQ(metric_in("run/a_b_c", "a/b"), "a/b_c");
  EXPECT_EQ(metric_in("run/a/b/c", "a/b"), "a/b_c") << "as tensorboardX";
  EXPECT_EQ(metric_in("run/my loss/dev: 1", "my_loss"), "my_loss_dev: 1") << "the tag had a blank";
  EXPECT_EQ(metric_in("run/my loss_dev", "my_loss"), "my_loss_dev");
  EXPECT_EQ(metric_in("run/my-loss/dev", "my_loss"), "my_loss") << "tags may have hyphens";
  EXPECT_EQ(metric_in("run/version_0", "loss"), "loss");
}

std::vector<std::string> words_of(std::vector<std::string> words, const Params& params, bool shell = false,
                                  std::uint32_t repeat = 0) {
  CommandSpec spec;
  spec.words = std::move(words);
  spec.shell = shell;
  RunConfig config;
  config.params = params;
  config.repeat = repeat;
  config.command = std::make_shared<const CommandSpec>(spec);
  return command_words({.config = config, .run_directory = "/run"});
}

std::string shell_text_of(const std::string& text, const Params& params) {
  return words_of({text}, params, true).back();
}

TEST(CommandWords, ParametersMayHaveAnyName) {
  const Params params = {{"+opt.lr", 0.1}, {"a b", std::int64_t{2}}, {"\u00fc}", std::string("x")}};
  EXPECT_THAT(
      words_of({"{+opt.lr}", "--n={a b}", "{\u00fc}}", "{{a b}}", "${a b}", "{a  b}", "{print $1}", "{"},
               params),
      ElementsAre("0.1", "--n=2", "x", "{a b}", "${a b}", "{a  b}", "{print $1}", "{"));
  EXPECT_EQ(shell_text_of("echo {a b} '{print $1}'", params), "echo '2' '{print $1}'");
}

TEST(CommandWords, AWordWhoseParameterTheRunLacksIsLeftOutAlsoForAShell) {
  const Params params = {{"lr", 0.5}};
  EXPECT_THAT(words_of({"echo", "--m={m}", "{lr}"}, params), ElementsAre("echo", "0.5"));
  EXPECT_EQ(shell_text_of("echo --m={m} --lr={lr}", params), "echo  --lr='0.5'");
  EXPECT_EQ(shell_text_of("a --m={m}; b {lr}>'x y'{m} && c \"d {m}\"|e \\ {m}", params),
            "a ; b '0.5'> && c |e ");
}

TEST(CommandWords, AValueIsQuotedAlsoWithinSingleQuotesOfAShellsText) {
  const Params params = {{"tag", std::string("it's; false $x")}, {"lr", 0.5}};
  const std::string text =
      shell_text_of("printf %s/ '{tag}' {tag} 'a {tag}' '{lr}' 'python3 {flags}'", params);
  const CommandResult result = run_command({"/bin/sh", "-c", text}, [] { return true; });
  EXPECT_EQ(result.out,
            "it's; false $x/it's; false $x/a it's; false $x/0.5/"
            "python3 --tag=it's; false $x --lr=0.5/")
      << text;
}

TEST(CommandWords, TheSeedOfARepeatIsItsOwnAlsoIfItIsAParameter) {
  const Params params = {{"seed", std::int64_t{5}}, {"repeat", std::int64_t{2}}};
  EXPECT_THAT(words_of({"{seed}", "{flags}", "{overrides}"}, params, false, 2),
              ElementsAre("7", "--seed=7", "seed=7"));
  EXPECT_THAT(words_of({"{seed}"}, {{"repeat", std::int64_t{2}}}, false, 2), ElementsAre("2"));
  RunConfig config;
  config.params = params;
  config.repeat = 2;
  EXPECT_THAT(params_text(config), HasSubstr("\"seed\": 7"));
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

TEST(GpuPool, GivesNoGpuToTwoRunsUnlessAsked) {
  GpuPool pool({"a", "b", "c"}, 2);
  EXPECT_THAT(pool.max_runs(), Optional(1U));
  ASSERT_TRUE(pool.has_free());
  const auto first = pool.take();
  EXPECT_THAT(first, ElementsAre("a", "b"));
  EXPECT_FALSE(pool.has_free());
  pool.give_back(first);
  ASSERT_TRUE(pool.has_free());
  EXPECT_THAT(pool.take(), ElementsAre("a", "b"));
}

TEST(GpuPool, FillsAllGpusBeforeRunsShareOne) {
  GpuPool pool({"a", "b"}, 1, 2);
  EXPECT_THAT(pool.max_runs(), Optional(4U));
  for (const char* gpu : {"a", "b", "a", "b"}) {
    ASSERT_TRUE(pool.has_free());
    EXPECT_THAT(pool.take(), ElementsAre(gpu));
  }
  EXPECT_FALSE(pool.has_free());
}

TEST(GpuPool, SaysWhatIsMissing) {
  EXPECT_EQ(GpuPool({"a", "b"}, 2).problem(), std::nullopt);
  EXPECT_EQ(GpuPool().problem(), std::nullopt);
  EXPECT_THAT(GpuPool({"a"}, 2).problem(), Optional(HasSubstr("2, but programs see only 1 here (a)")));
  EXPECT_THAT(GpuPool({}, 1).problem(), Optional(HasSubstr("programs see none here")));
}

}  // namespace sweep::metric_sources_test
