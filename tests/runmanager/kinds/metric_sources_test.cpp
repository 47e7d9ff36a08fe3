// The metrics of a person's program, as its lines and its events have them.
#include "runmanager/kinds/command/metric_sources.h"

#include <fmt/format.h>

#include "core/base/file.h"
#include "runmanager/kinds/command/event_names.h"
#include "tests/support/test.h"

namespace sweep::metric_sources_test {

// A file of metrics and what was read of it: "step name=value …", or "attempt N".
struct Metrics {
  test::TemporaryDirectory folder;
  MetricFile file{folder / "metrics.jsonl"};
  std::vector<std::string> found;

  void write(std::string_view text) {
    const FileDescriptor out = open_output_file(folder / "metrics.jsonl", OutputMode::kAppend);
    write_all(out.get(), text, "metrics.jsonl");
    poll();
  }
  void poll() {
    file.poll(
        [this](const MetricReport& report) {
          std::string text = report.step ? std::to_string(*report.step) : "-";
          for (const auto& [metric, value] : report.values)
            text += fmt::format(" {}={:g}", metric->key, value);
          found.push_back(text);
        },
        [this](int attempt) { found.push_back(fmt::format("attempt {}", attempt)); });
  }
};

TEST(MetricFile, ReadsReportsWithAStepAnEpochOrNeither) {
  Metrics metrics;
  metrics.write(
      "{\"step\": 3, \"loss\": 0.5, \"note\": \"x\"}\r\n{\"epoch\": 2, \"loss\": NaN}\n{\"loss\": 1}\n");
  EXPECT_THAT(metrics.found, ElementsAre("3 loss=0.5", "2 loss=nan", "- loss=1"));
  EXPECT_EQ(metrics.file.take_problem(), "");
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
    EXPECT_THAT(metrics.file.take_problem(), HasSubstr(problem));
    EXPECT_EQ(metrics.file.take_problem(), "");
  }
}

TEST(MetricFile, ALineWithoutAnEndCountsOnceItIsEnded) {
  Metrics metrics;
  metrics.write("{\"loss\": 1}");
  EXPECT_THAT(metrics.found, IsEmpty()) << "more may come";
  metrics.file.end_line();
  metrics.poll();
  metrics.file.end_line();
  metrics.file.append_attempt(2);
  metrics.poll();
  EXPECT_THAT(metrics.found, ElementsAre("- loss=1", "attempt 2"));
}

TEST(MetricFile, ReadsLinesOfThousandsOfMetrics) {
  Metrics metrics;
  std::string line = "{\"loss\": 7";
  for (int i = 0; i < 5000; ++i) line += fmt::format(", \"layer{}/gradient_norm\": 0.125", i);
  metrics.write(line + "}\n");
  ASSERT_EQ(metrics.found.size(), 1u);
  EXPECT_THAT(metrics.found[0], HasSubstr("layer4999/gradient_norm=0.125"));
}

std::string metrics_of_output(std::string_view text) {
  CommandSpec spec;
  spec.metrics = {{"loss", "loss=([0-9.]+)"}, {"acc", "acc=([0-9.]+)"}};
  OutputMetrics output(spec);
  for (const char c : text) output.add({&c, 1});
  output.finish();
  return output.take();
}

TEST(OutputMetrics, OfALineThatIsOverwrittenTheLastValueCounts) {
  EXPECT_EQ(metrics_of_output("1/2 loss=3\r2/2 loss=2 acc=0.5\r          \rdone\r\nloss=1"),
            "{\"step\":1,\"loss\":2}\n{\"step\":1,\"acc\":0.5}\n{\"step\":2,\"loss\":1}\n");
  EXPECT_EQ(metrics_of_output("loss=3\rloss=2\r"), "{\"step\":1,\"loss\":2}\n");
}

TEST(OutputMetrics, LeavesOutFractionsOfStepsAndWhatOnlyBeginsLikeANumberAndTellsTheFirst) {
  CommandSpec spec;
  spec.metrics = {{"loss", "epoch (?<step>\\S+) loss=(\\S+)"}};
  for (const auto& [line, problem] : {std::pair("epoch -1 loss=1", "its step, -1, is no whole number"),
                                      std::pair("epoch 1.5 loss=1", "its step, 1.5, is no whole number"),
                                      std::pair("epoch 1 loss=1,5", "its value, 1,5, is no number"),
                                      std::pair("epoch 1 loss=0x10", "its value, 0x10, is no number")}) {
    OutputMetrics output(spec);
    output.add(std::string(line) + "\nepoch 3 loss=+4e0\nepoch 4 loss=x\n");
    EXPECT_EQ(output.take(), "{\"step\":3,\"loss\":4}\n") << line;
    EXPECT_THAT(output.take_problem(), HasSubstr(problem));
    EXPECT_EQ(output.take_problem(), "");
  }
}

TEST(EventNames, KeepTheSubdirectoriesOfKerasAndAddScalarsApart) {
  EXPECT_EQ(metric_in("run/train", "epoch_loss"), "loss");
  EXPECT_EQ(metric_in("run/validation", "epoch_loss"), "validation_loss");
  EXPECT_EQ(metric_in("run/val", "epoch_auc"), "validation_epoch_auc");
  EXPECT_EQ(metric_in("run/train", "batch_loss"), "") << "its steps are batches";
  EXPECT_EQ(metric_in("run/loss_val", "loss"), "loss_val");
  EXPECT_EQ(metric_in("run/a_b_c", "a/b"), "a/b_c");
  EXPECT_EQ(metric_in("run/version_0", "loss"), "loss");
}

}  // namespace sweep::metric_sources_test
