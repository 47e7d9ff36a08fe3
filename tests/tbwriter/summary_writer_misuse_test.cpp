// What callers may do wrong with a SummaryWriter, or at its edges.

#include <ctime>

#include "tbwriter/summary_writer.h"
#include "tests/support/event_files.h"

namespace sweep::tbwriter::summary_writer_misuse_test {

struct SummaryWriterMisuse : testing::Test {
  TemporaryDirectory directory;
  std::filesystem::path run = directory / "run";
};

TEST_F(SummaryWriterMisuse, RefusesEmptyTagsOfAllKindsAndEverythingAfterClose) {
  SummaryWriter writer(run);
  const ScalarPoint lines[] = {{"line", 1}};
  const float points[] = {1, 2, 3, 4};
  const float corners[] = {0, 0, 0};
  const std::pair<const char*, std::function<void(std::string_view)>> kinds[] = {
      {"scalar", [&](auto tag) { writer.add_scalar(tag, 1); }},
      {"lines", [&](auto tag) { writer.add_scalars(tag, lines, 1); }},
      {"embedding", [&](auto tag) { writer.add_embedding(tag, points, 2); }},
      {"mesh", [&](auto tag) { writer.add_mesh(tag, {.vertices = corners}); }},
      {"profile", [&](auto tag) { writer.add_graph_profile(tag, {}, 1); }}};
  for (const auto& [kind, add] : kinds)
    EXPECT_THAT(message_of<UsageError>([&, &add = add] { add(""); }), HasSubstr("tag is empty")) << kind;
  writer.close();
  for (const auto& [kind, add] : kinds)
    EXPECT_THAT(message_of<UsageError>([&, &add = add] { add("tag"); }), HasSubstr("the writer is closed"))
        << kind;
  EXPECT_THAT(std::vector<std::filesystem::path>(std::filesystem::directory_iterator(run), {}),
              ElementsAre(writer.path()));
}

TEST_F(SummaryWriterMisuse, GoesOnAfterALineWhoseDirectoryIsTaken) {
  const ScalarPoint lines[] = {{"line", 1}};
  SummaryWriter other(run / "tag_line");
  SummaryWriter writer(run);
  EXPECT_THROW(writer.add_scalars("tag", lines, 1), IoError);
  writer.flush();
  other.close();
  writer.add_scalars("tag", lines, 2);
  writer.close();
  EXPECT_EQ(read_run(run / "tag_line").back().step(), 2);
}

TEST_F(SummaryWriterMisuse, KeepsEmbeddingsThatSeveralThreadsAddAndThatHaveSimilarTags) {
  SummaryWriter writer(run);
  const float points[] = {1, 2, 3, 4};
  std::vector<std::jthread> threads;
  for (const char* tag : {"a/b", "a_b", "a%2fb", ".a"}) {
    threads.emplace_back([&writer, &points, tag] {
      for (int step = 0; step < 20; ++step) writer.add_embedding(tag, points, 2, {}, {}, step);
    });
  }
  threads.clear();
  const std::string config = read_file(run / "projector_config.pbtxt");
  for (const char* name : {"a%2fb", "a_b", "a%252fb", "%2ea"}) {
    for (int step = 0; step < 20; ++step)
      EXPECT_THAT(config,
                  HasSubstr(std::string("\"") + name + "/" + std::to_string(step) + "/tensors.tsv\""));
  }
}

TEST_F(SummaryWriterMisuse, ReplacesEmbeddingsOfTheSameTagAndStep) {
  SummaryWriter writer(run);
  const float points[] = {1, 2, 3, 4};
  const EmbeddingLabels labels = {.rows = {{" "}, {"two"}}};
  const std::uint8_t pixels[2] = {};
  const EmbeddingPictures pictures = {pixels, {.count = 2, .channels = 1, .height = 1, .width = 1}};
  writer.add_embedding("first", points, 2);
  writer.add_embedding("tag", points, 2, {}, pictures);
  writer.add_embedding("last", points, 2);
  writer.add_embedding("tag", points, 2, labels);
  const auto entry = [](const std::string& tag) {
    return "embeddings {\n  tensor_name: \"" + tag + ":00000\"\n  tensor_path: \"" + tag +
           "/0/tensors.tsv\"\n";
  };
  EXPECT_EQ(read_file(run / "projector_config.pbtxt"), entry("first") + "}\n" + entry("last") + "}\n" +
                                                           entry("tag") +
                                                           "  metadata_path: \"tag/0/metadata.tsv\"\n}\n");
  EXPECT_EQ(read_file(run / "tag/0/metadata.tsv"), "\u200b \ntwo\n")
      << "no blank line, which TensorBoard skips";
}

TEST_F(SummaryWriterMisuse, SaysThatTheProjectorsFileCannotBeRead) {
  SummaryWriter writer(run);
  std::filesystem::create_directory(run / "projector_config.pbtxt");
  const float points[] = {1, 2};
  EXPECT_THAT(message_of<IoError>([&] { writer.add_embedding("tag", points, 2); }),
              HasSubstr("projector_config.pbtxt"));
}

// Steps above 2^31 - 1 would break the hyperparameters of all runs.
TEST_F(SummaryWriterMisuse, StartsASessionAfterOneThatWasRefusedAndNoneWithLargeSteps) {
  constexpr std::int64_t kTooFar = std::int64_t{1} << 31;
  SummaryWriter writer(run);
  EXPECT_THROW(writer.add_hparams_start({{"text", std::string(64 << 20, 'x')}}), UsageError);
  writer.add_scalar("far", 1, kTooFar);
  EXPECT_THAT(message_of<UsageError>([&] { writer.add_hparams_start({}); }),
              HasSubstr("is above 2147483647"));
  writer.close();
  EXPECT_EQ(read_run(run).size(), 3u) << "no end of a session that did not start";
  SummaryWriter other(directory / "other");
  EXPECT_THROW(other.add_hparams_start({{"text", std::string(64 << 20, 'x')}}), UsageError);
  other.add_hparams_start({{"text", "short"}});
  EXPECT_THAT(message_of<UsageError>([&] { other.add_hparams_start({}); }),
              HasSubstr("has been started before"));
  other.add_scalar("far", 1, kTooFar - 1);
  EXPECT_THROW(other.add_scalar("far", 1, kTooFar), UsageError);
  other.close();
  EXPECT_EQ(read_run(directory / "other").size(), 5u);
}

TEST_F(SummaryWriterMisuse, ClosesItsLinesAlsoIfTheClockFails) {
  bool fails = false;
  WriterOptions options;
  options.clock = [&] { return fails ? throw std::runtime_error("no time") : 1e9; };
  SummaryWriter writer(run, options);
  writer.add_hparams_start({});
  const ScalarPoint lines[] = {{"line", 1}};
  writer.add_scalars("tag", lines, 1);
  fails = true;
  EXPECT_THAT([&] { writer.close(); }, ThrowsMessage<std::runtime_error>("no time"));
  EXPECT_EQ(read_run(run).size(), 3u) << "it is closed";
  EXPECT_NO_THROW(SummaryWriter(run / "tag_line")) << "so is the line";
}

TEST_F(SummaryWriterMisuse, GoesOnIfWarningsAreNotTaken) {
  WriterOptions options;
  options.warn = [](const std::string& text) { throw std::runtime_error(text); };
  {
    SummaryWriter writer(run, options);
    for (const int step : {2, 1}) writer.add_scalar("tag", step, step);
    writer.flush();
    EXPECT_EQ(values_of(read_run(run), "tag").size(), 2u);
    std::filesystem::remove_all(run);
    writer.add_scalar("tag", 3, 3);
  }  // warns that the file was removed
}

TEST_F(SummaryWriterMisuse, SleepsAlsoIfItIsToWriteAtOnce) {
  SummaryWriter writer(run, {.flush_interval = std::chrono::milliseconds(0)});
  const std::clock_t before = std::clock();  // of the processor
  std::this_thread::sleep_for(std::chrono::milliseconds(400));
  EXPECT_LT(std::clock() - before, CLOCKS_PER_SEC / 10);
}

TEST_F(SummaryWriterMisuse, RefusesWhatTensorBoardCouldNotShowAndGoesOn) {
  using Labels = std::vector<std::uint8_t>;
  using Floats = std::vector<float>;
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN(),
                  kInf = std::numeric_limits<float>::infinity();
  constexpr std::int64_t kHuge = std::int64_t{1} << 33;
  const auto sound = [](std::int64_t rate, std::int64_t channels) {
    return [=](SummaryWriter& writer) { writer.add_audio("t", Floats(6), rate, channels); };
  };
  const auto tensor = [](std::size_t count, const std::vector<std::int64_t>& shape) {
    return [=](SummaryWriter& writer) { writer.add_tensor("t", Floats(count), shape); };
  };
  const auto curve = [](const Labels& labels, const Floats& scores, int thresholds = 3,
                        const Floats& weights = {}) {
    return
        [=](SummaryWriter& writer) { writer.add_pr_curve("t", labels, scores, 1, thresholds, {}, weights); };
  };
  const auto graph = [](const std::vector<GraphNode>& nodes) {
    return [=](SummaryWriter& writer) { writer.add_graph({nodes}); };
  };
  const auto session = [](const HParams& hparams) {
    return [=](SummaryWriter& writer) { writer.add_hparams_start(hparams); };
  };
  const std::vector<ScalarPoint> points{{"fine", 1}, {"", 1}};
  const std::pair<std::function<void(SummaryWriter&)>, const char*> calls[] = {
      {[](SummaryWriter& writer) { writer.add_text("s", "now text"); }, "cannot become text"},
      {[&](SummaryWriter& writer) { writer.add_scalar("s", 1, 1, {.wall_time = kNan}); }, "not a finite"},
      {[](SummaryWriter& writer) { writer.add_text("t", std::string(64 << 20, 'x')); }, "than 64 MiB"},
      {[&](SummaryWriter& writer) { writer.add_scalar_batch(points); }, "a tag is empty"},
      {[&](SummaryWriter& writer) {
         const float corners[] = {0, 0, 0};
         const std::int32_t faces[] = {0, 0, 0};
         writer.add_mesh("m", {.vertices = corners, .faces = faces});
       },
       "\"m_FACE\" is a scalar"},
      {sound(8000, 4), "6 samples, which are no whole frames"},
      {sound(0, 1), "needs 1 to 65535 channels and 1 to 10000000 samples"},
      {sound(8000, 65536), "has 65536 channels at 8000"},
      {tensor(0, {std::int64_t{1} << 32, std::int64_t{1} << 32}), "but 0 values were given"},
      {tensor(0, {-1}), "a tensor's shape is [-1], but 0 values"},
      {tensor(6, {5}), "a tensor's shape is [5], but 6 values"},
      {tensor(6, {}), "a tensor's shape is [], but 6 values"},
      {tensor(6, {-2, -3}), "a tensor's shape is [-2, -3], but 6 values"},
      {tensor(6, {2, 3, 0}), "a tensor's shape is [2, 3, 0], but 6 values"},
      {tensor(6, {kHuge, kHuge}), "but 6 values"},
      {curve({0, 2}, {0, 1}), "label 1 is 2, but must be 0 or 1"},
      {curve({0, 1}, {0, 1.5f}), "score 1 is 1.5"},
      {curve({0, 1}, {0, kNan}), "score 1 is nan"},
      {curve({0, 1}, {0}), "2 labels, 1 scores and 0 weights"},
      {curve({0, 1}, {0, 1}, 3, {1}), "2 labels, 2 scores and 1 weights"},
      {curve({0, 1}, {0, 1}, 1), "1 thresholds, but needs 2 to 127"},
      {curve({0, 1}, {0, 1}, 128), "128 thresholds, but needs 2 to 127"},
      {curve({0, 1}, {0, 1}, 3, {1, -1}), "weight 1 is -1"},
      {curve({0, 1}, {0, 1}, 3, {1, kNan}), "weight 1 is nan"},
      {curve({1, 1}, {0, 1}, 3, {3e38f, 3e38f}), "a number that is not finite"},  // the sum is no float
      {[](SummaryWriter& writer) {
         const Floats ones = {1, 1}, infinite = {1, kInf};
         writer.add_pr_curve("t", PrCurve{ones, ones, ones, ones, infinite, ones}, 1);
       },
       "a number that is not finite"},
      {graph({}), "a graph has no nodes"},
      {graph({{.name = "", .op = "A"}}), "a graph's node has no name (its op is \"A\")"},
      {graph({{.name = "a"}, {.name = "a"}}), "the graph has two nodes called a"},
      {graph({{.name = "a", .inputs = {"a:0", "nowhere"}}}),
       "the graph's node a has the input nowhere, but no node is called so"},
      {session({{"", 1.0}}), "a hyperparameter has no name"},
      {session({{"a", 1.0}, {"a", 2.0}}), "the hyperparameter a is given twice"},
      {[](SummaryWriter& writer) {
         writer.add_custom_scalars_layout({{"losses", {{"band", {"a", "b", "c", "d"}, true}}}});
       },
       "4 tags, but needs 3 for every line"}};
  SummaryWriter writer(run);
  writer.add_scalar("s", 1, 0);
  writer.add_scalar("m_FACE", 1, 0);
  for (const auto& [call, message] : calls)
    EXPECT_THAT(message_of<UsageError>([&, &refused = call] { refused(writer); }), HasSubstr(message));
  writer.add_scalar("s", 2, 1);
  writer.close();
  EXPECT_EQ(read_run(run).size(), 5u);
  EXPECT_THAT(tags_of(read_run(run)), UnorderedElementsAre("s", "m_FACE"));
}

TEST_F(SummaryWriterMisuse, TakesTimesThatMeanNeverAndAQueueWithoutRoom) {
  WriterOptions options = {.queue_bytes = 0};
  options.write_timeout = options.flush_interval = std::chrono::milliseconds::max();
  SummaryWriter writer(run, options);
  for (int step = 0; step < 3; ++step) writer.add_scalar("tag", 1, step);
  writer.close();
  EXPECT_EQ(read_run(run).size(), 5u);
}

}  // namespace sweep::tbwriter::summary_writer_misuse_test
