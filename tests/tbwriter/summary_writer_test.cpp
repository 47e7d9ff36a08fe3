#include "tbwriter/summary_writer.h"

#include "proto/tensorboard/hparams.pb.h"
#include "tbwriter/event_files.h"
#include "tests/support/event_files.h"

namespace sweep::tbwriter::summary_writer_test {

constexpr double kNow = 1700000000.25;

// A fixed clock, and warnings kept.
struct Fixture : testing::Test {
  std::vector<proto::Event> events() const { return read_run(run); }
  // The events of a run for which `write` has been called.
  template <class Write>
  std::vector<proto::Event> written(Write write) {
    SummaryWriter writer(run, options);
    write(writer);
    writer.close();
    return events();
  }

  TemporaryDirectory directory;
  std::filesystem::path run = directory / "sweep/run=1,lr=0.1";
  std::vector<std::string> warnings;
  WriterOptions options = {.clock = [] { return kNow; },
                           .warn = [this](const std::string& text) { warnings.push_back(text); }};
};

using SummaryWriterTest = Fixture;

TEST_F(SummaryWriterTest, BeginsItsFileWithVersionAndSessionStartBeforeAnythingIsAdded) {
  SummaryWriter writer(run, options);
  const auto found = events();
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].file_version(), "brain.Event:2");
  EXPECT_EQ(found[0].wall_time(), kNow);
  EXPECT_EQ(found[1].session_log().status(), proto::SessionLog::START);
  EXPECT_EQ(found[1].step(), 0);
  EXPECT_THAT(writer.path().filename().string(),
              MatchesRegex("events.out.tfevents.1700000000..*.[0-9]+.000000"));
  EXPECT_EQ(writer.log_dir(), run);
}

TEST_F(SummaryWriterTest, KeepsEveryStepAndValue) {
  const float inf = std::numeric_limits<float>::infinity();
  const std::vector<double> values{0.0, -0.0, 1.5, 1e-40, 3e38, inf, -inf, std::nan(""), 1e300};
  const std::vector<std::int64_t> steps{
      -5, 0, 1, 127, 128, 1 << 20, 1 << 21, std::int64_t{1} << 40, std::numeric_limits<std::int64_t>::max()};
  const auto found = written([&](SummaryWriter& writer) {
    for (std::size_t i = 0; i < values.size(); ++i) writer.add_scalar("x", values[i], steps[i]);
  });
  ASSERT_EQ(found.size(), 2 + values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    EXPECT_EQ(found[i + 2].step(), steps[i]);
    const auto& value = found[i + 2].summary().value(0);
    EXPECT_EQ(value.value_case(), proto::Summary::Value::kSimpleValue) << i;
    const auto wanted = static_cast<float>(values[i]);
    EXPECT_EQ(std::isnan(value.simple_value()), std::isnan(wanted));
    if (!std::isnan(wanted)) {
      EXPECT_EQ(value.simple_value(), wanted);
    }
  }
  EXPECT_TRUE(warnings.empty());
}

TEST_F(SummaryWriterTest, WritesSeveralScalarsIntoOneEvent) {
  const std::vector<ScalarPoint> points{{"Loss/train", 0.5}, {"Accuracy/train", 0.75}};
  const auto found = written([&](SummaryWriter& writer) { writer.add_scalar_batch(points, 3); });
  ASSERT_EQ(found.size(), 3u);
  ASSERT_EQ(found[2].summary().value_size(), 2);
  EXPECT_EQ(found[2].step(), 3);
  EXPECT_EQ(found[2].summary().value(1).tag(), "Accuracy/train");
  EXPECT_EQ(found[2].summary().value(1).simple_value(), 0.75f);
}

TEST_F(SummaryWriterTest, WritesDescriptionsOnceAndWithTheClassThatTensorBoardNeeds) {
  const auto found = written([](SummaryWriter& writer) {
    for (int step = 0; step < 3; ++step) {
      writer.add_scalar("s", 1, step, {.display_name = "S", .description = "scalar"});
      writer.add_histogram("h", std::vector<float>{1, 2}, step, {.description = "histogram"});
      writer.add_text("t", "text", step);
      writer.add_scalar_tensor("n", 0.25, step);
    }
    EXPECT_THROW(writer.add_scalar("n", 1, 3), UsageError) << "of the other style";
  });
  const auto expect = [&](const char* tag, const char* plugin, proto::DataClass data_class,
                          const char* description) {
    const auto values = values_of(found, tag);
    ASSERT_EQ(values.size(), 3u);
    EXPECT_EQ(values[0].metadata().plugin_data().plugin_name(), plugin);
    EXPECT_EQ(values[0].metadata().data_class(), data_class);
    EXPECT_EQ(values[0].metadata().summary_description(), description);
    EXPECT_FALSE(values[1].has_metadata());
    EXPECT_FALSE(values[2].has_metadata());
  };
  expect("s", "scalars", proto::DATA_CLASS_SCALAR, "scalar");
  expect("h", "histograms", proto::DATA_CLASS_TENSOR, "histogram");
  expect("t", "text", proto::DATA_CLASS_TENSOR, "");
  expect("n", "scalars", proto::DATA_CLASS_SCALAR, "");
  EXPECT_EQ(values_of(found, "s")[0].metadata().display_name(), "S");
}

TEST_F(SummaryWriterTest, RefusesAClockThatTellsNoTime) {
  double now = std::nan("");
  options.clock = [&now] { return now; };
  EXPECT_THROW(SummaryWriter(run, options), UsageError);
  EXPECT_FALSE(std::filesystem::exists(run));
  now = kNow;
  SummaryWriter writer(run, options);
  now = std::numeric_limits<double>::infinity();
  EXPECT_THROW(writer.add_scalar("s", 1), UsageError);
  now = kNow;
  writer.add_scalar("s", 1);
  writer.close();
  EXPECT_EQ(values_of(events(), "s").size(), 1u);
}

TEST_F(SummaryWriterTest, NamesALaterFileThanAnyOlderOneAlthoughTheClockWentBack) {
  std::filesystem::create_directories(run);
  spill(run / "events.out.tfevents.1900000000.other.1.0", "");
  options.purge_step = 12;
  SummaryWriter writer(run, options);
  const auto files = list_event_files(run);
  ASSERT_EQ(files.size(), 2u);
  EXPECT_EQ(writer.path().filename(), files[1]);
  const auto found = read_events(writer.path());
  EXPECT_EQ(found[1].session_log().status(), proto::SessionLog::START);
  EXPECT_EQ(found[1].step(), 12);
}

TEST_F(SummaryWriterTest, ShowsPointsAfterTheFlushIntervalWithoutAFlush) {
  options.flush_interval = std::chrono::milliseconds(20);
  SummaryWriter writer(run, options);
  writer.add_scalar("s", 1, 0);
  for (int i = 0; i < 500 && events().size() < 3; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_EQ(events().size(), 3u);
}

TEST_F(SummaryWriterTest, WritesWhenEnoughBytesHaveComeTogether) {
  options.flush_interval = std::chrono::hours(1);
  options.flush_bytes = 1000;
  SummaryWriter writer(run, options);
  for (int step = 0; step < 100; ++step) writer.add_scalar("s", 1, step);
  for (int i = 0; i < 500 && std::filesystem::file_size(writer.path()) < 1000; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_GE(std::filesystem::file_size(writer.path()), 1000u);
}

TEST_F(SummaryWriterTest, MayBeUsedByManyThreads) {
  constexpr int kThreads = 4, kPoints = 5000;
  SummaryWriter writer(run, options);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      const std::string tag = "thread" + std::to_string(t);
      for (int step = 0; step < kPoints; ++step) {
        writer.add_scalar(tag, t, step);
        if (step % 1000 == 0) writer.flush();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  writer.close();
  std::map<std::string, std::int64_t> next;
  for (const proto::Event& event : events()) {
    for (const auto& value : event.summary().value()) EXPECT_EQ(event.step(), next[value.tag()]++);
  }
  EXPECT_EQ(next.size(), static_cast<std::size_t>(kThreads));
  for (const auto& [tag, points] : next) EXPECT_EQ(points, kPoints) << tag;
}

TEST_F(SummaryWriterTest, WritesTagsAndTextAsValidUtf8) {
  const auto found = written([](SummaryWriter& writer) {
    writer.add_text("t\xFF", "a\x80", 0);
    writer.add_text("t\xFF", "\xCE\xBB", 1);
  });
  const auto values = values_of(found, "t\xEF\xBF\xBD");
  ASSERT_EQ(values.size(), 2u);
  EXPECT_EQ(values[0].tensor().string_val(0), "a\xEF\xBF\xBD");
  EXPECT_EQ(values[1].tensor().string_val(0), "\xCE\xBB");
  EXPECT_EQ(values[0].tensor().tensor_shape().dim_size(), 0);
}

std::vector<proto::HParamsPluginData> hparams_records(const std::vector<proto::Event>& events) {
  std::vector<proto::HParamsPluginData> records;
  for (const char* tag : {"_hparams_/session_start_info", "_hparams_/session_end_info"}) {
    for (const auto& value : values_of(events, tag)) {
      EXPECT_EQ(value.metadata().plugin_data().plugin_name(), "hparams");
      EXPECT_EQ(value.tensor().tensor_shape().dim(0).size(), 0) << "without a value the Python loader fails";
      records.emplace_back();
      EXPECT_TRUE(records.back().ParseFromString(value.metadata().plugin_data().content()));
    }
  }
  return records;
}

TEST_F(SummaryWriterTest, EndsAnOpenSessionAsASuccessOrAsTheFailureOfAnExceptionUnlessToldNotTo) {
  const auto start = [](SummaryWriter& writer) { writer.add_hparams_start({{"lr", 0.1}}); };
  const auto records = hparams_records(written(start));
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(records[1].session_end_info().status(), proto::STATUS_SUCCESS);
  EXPECT_TRUE(values_of(events(), "_hparams_/experiment").empty());

  run = directory / "fails";
  const auto fail = [&](SummaryWriter& writer) {
    start(writer);
    throw std::runtime_error("training failed");
  };
  EXPECT_THROW(written(fail), std::runtime_error);
  const auto failed = hparams_records(events());
  ASSERT_EQ(failed.size(), 2u);
  EXPECT_EQ(failed[1].session_end_info().status(), proto::STATUS_FAILURE);

  run = directory / "open";
  options.end_session_on_close = false;
  EXPECT_EQ(hparams_records(written(start)).size(), 1u);
}

TEST_F(SummaryWriterTest, WarnsOfHyperparametersThatAreNotFiniteAndLeavesThemOut) {
  const auto records = hparams_records(written([](SummaryWriter& writer) {
    writer.add_hparams_start({{"lr", std::nan("")}, {"beta", 0.5}, {"big", HUGE_VAL}});
  }));
  EXPECT_THAT(warnings, ElementsAre(HasSubstr("the hyperparameter lr is nan"),
                                    HasSubstr("the hyperparameter big is inf")));
  EXPECT_EQ(records.at(0).session_start_info().hparams().size(), 1u);
}

TEST_F(SummaryWriterTest, WarnsOnceOfStepsThatDoNotGrow) {
  SummaryWriter writer(run, options);
  for (const int step : {0, 1, 1, 0, 2}) writer.add_scalar("s", 1, step);
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_THAT(warnings[0], HasSubstr("\"s\": step 1 comes after step 1"));
}

const Graph kGraph = {{{.name = "a", .op = "A"}, {.name = "b", .op = "B", .inputs = {"a"}}}};

std::vector<NodeProfile> profile_of(const std::string& node) {
  return {{.node = node, .device = "/device:CPU:0", .duration_micros = 1, .output_shapes = {{1}}}};
}

TEST_F(SummaryWriterTest, TakesOneGraphAndProfilesOfItsNodes) {
  const auto found = written([](SummaryWriter& writer) {
    const auto refused = [](const auto& call) { return message_of<UsageError>(call); };
    EXPECT_THROW(writer.add_graph({}), UsageError);
    EXPECT_THAT(refused([&] { writer.add_graph_profile("step", profile_of("a")); }),
                HasSubstr("before the graph"));
    writer.add_graph(kGraph);
    EXPECT_THAT(refused([&] { writer.add_graph(kGraph); }), HasSubstr("has a graph already"));
    EXPECT_NO_THROW(writer.add_graph_profile("step", profile_of("b")));
    EXPECT_THAT(refused([&] { writer.add_graph_profile("step", profile_of("c")); }),
                HasSubstr("the node c, but the graph has none"));
  });
  EXPECT_EQ(std::ranges::count_if(found, [](const auto& event) { return !event.graph_def().empty(); }), 1);
  options.purge_step = 5;
  SummaryWriter resumed(run, options);
  EXPECT_NO_THROW(resumed.add_graph_profile("step", profile_of("a"), 5)) << "an older file has the graph";
}

}  // namespace sweep::tbwriter::summary_writer_test
