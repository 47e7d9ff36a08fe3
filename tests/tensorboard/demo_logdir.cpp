// Writes log directories; the tests next to it compare them with what TensorBoard shows. peer_logdir has what
// PyTorch's writer can write as well. Usage: demo_logdir DIRECTORY
// [live|experiment|sessions|endless|continued|many]
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <map>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "tbwriter/summary_writer.h"
#include "tests/tensorboard/pictures.h"

namespace {

using namespace sweep::tbwriter;
using Path = std::filesystem::path;

std::vector<float> normal_values(std::size_t n, float mean, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(mean, 1.0f);
  std::vector<float> values(n);
  std::ranges::generate(values, [&] { return normal(random); });
  return values;
}

Graph network_graph() {
  const std::string cpu = "/device:CPU:0";
  const auto parameter = [&](std::string name, GraphShape shape) {
    return GraphNode{
        .name = std::move(name), .op = "Parameter", .device = cpu, .output_shapes = {std::move(shape)}};
  };
  Graph graph;
  graph.nodes = {
      {.name = "input", .op = "Placeholder", .device = cpu, .output_shapes = {{-1, 1, 28, 28}}},
      parameter("conv1/weight", {6, 1, 5, 5}),
      parameter("conv1/bias", {6}),
      {.name = "conv1/conv2d",
       .op = "Conv2d",
       .inputs = {"input", "conv1/weight", "conv1/bias"},
       .device = cpu,
       .attributes = {{"kernel_size", std::vector<std::int64_t>{5, 5}}, {"parameters", std::int64_t{156}}},
       .output_shapes = {{-1, 6, 24, 24}}},
      {.name = "relu",
       .op = "ReLU",
       .inputs = {"conv1/conv2d"},
       .device = cpu,
       .output_shapes = {{-1, 6, 24, 24}}},
      parameter("head/out/weight", {10, 3456}),
      {.name = "head/out/linear",
       .op = "Linear",
       .inputs = {"relu", "head/out/weight"},
       .device = "/device:GPU:0",
       .output_shapes = {{-1, 10}}},
  };
  return graph;
}

void write_values(const Path& directory) {
  SummaryWriter writer(directory / "values");
  for (int step = 0; step < 20; ++step) {
    writer.add_scalar("plain", 1.0 / (step + 1), step);
    writer.add_scalar("described", step * 0.1, step,
                      {.display_name = "A name", .description = "with **bold** text"});
    const std::vector<float> values = normal_values(1000, 0.1f * static_cast<float>(step), 7);
    writer.add_histogram("normal", values, step, {.description = "moving"});
  }
  const double infinity = std::numeric_limits<double>::infinity();
  const double special[] = {1, std::nan(""), infinity, -infinity, 1e300, -1e300, 2};
  for (int i = 0; i < 7; ++i) writer.add_scalar("special", special[i], i - 2);
  for (int step = 0; step < 3000; ++step) writer.add_scalar("long", step, step);
  writer.add_scalar(
      "gr\xC3\xB6\xC3\x9F"
      "e/\xCE\xBB",
      1);
  writer.add_histogram("none", std::vector<float>{});
  writer.add_histogram("one", std::vector<float>{2.5f});
  writer.add_histogram("diverged", std::vector<float>{1, std::nanf(""), 3});
  for (int step = 0; step < 3; ++step) writer.add_scalar_tensor("new_style", 0.1 * step, step);
  writer.add_histogram("bins", std::vector<double>{1, 2, 2, 3, 9}, HistogramBins::kAuto);
  writer.add_histogram("sparse", std::vector<float>{-3, -3, -1e-5f, 2e-3f, 1, 1, 1, 40});
  writer.add_histogram("huge", std::vector<double>{-1e300, 1, 2, 1e200});
  // The least and the largest value, the number, the sum, the sum of squares; limits and counts.
  writer.add_histogram_counts("counted", {-0.5, 1.5, 8, 4, 9, {-1, 0, 1, 2, 3}, {0, 3, 0, 5, 0}});
}

void write_pictures(const Path& directory) {
  SummaryWriter writer(directory / "pictures");
  writer.add_image("single", picture(1, 24, 3), {.height = 24, .width = 24, .channels = 3}, 0,
                   {.description = "an *image*"});
  for (int step = 0; step < 25; ++step)
    writer.add_image("series", picture(step, 16, 1), {.height = 16, .width = 16}, step);
  std::vector<EncodedImage> batch;
  for (int k = 0; k < 3; ++k) batch.push_back(encode_image(picture(k, 20, 1), {.height = 20, .width = 20}));
  writer.add_images("batch", batch);
  std::vector<std::uint8_t> grid;
  for (int k = 0; k < 64; ++k) std::ranges::copy(picture(k, 28, 1), std::back_inserter(grid));
  writer.add_image_grid("grid", grid, {.count = 64, .channels = 1, .height = 28, .width = 28});
  const Box boxes[] = {
      {.left = 3, .top = 4, .right = 20, .bottom = 15},
      {.left = 10, .top = 8, .right = 30, .bottom = 30, .color = {0, 255, 0}, .label = "cat"}};
  writer.add_image_with_boxes("boxes", picture(2, 32, 1), {.height = 32, .width = 32}, boxes);
  std::vector<std::uint8_t> frames, color_frames;
  for (int k = 0; k < 8; ++k) {
    std::ranges::copy(picture(k, 64, 1), std::back_inserter(frames));
    std::ranges::copy(planes(picture(k, 64, 3), 3), std::back_inserter(color_frames));
  }
  writer.add_video("video", frames, {.frames = 8, .height = 64, .width = 64}, 4);
  writer.add_video("color_video", color_frames, {.frames = 8, .channels = 3, .height = 64, .width = 64}, 4);
}

void write_text(const Path& directory) {
  SummaryWriter writer(directory / "text");
  writer.add_text("markdown", "# Title\n\n- a *list*\n");
  writer.add_text("table", "|a|b|\n|-|-|\n|1|2|\n");
  writer.add_text("broken", "caf\xE9 \xFF");
  writer.add_text("script", "<script>alert(1)</script>");
}

void write_graphs(const Path& directory) {
  SummaryWriter writer(directory / "graph");
  const Graph graph = network_graph();
  writer.add_graph(graph);
  std::vector<NodeProfile> profile;
  std::int64_t start = 1'700'000'000'000'000;
  for (const GraphNode& node : graph.nodes) {
    std::vector<GraphShape> shapes = node.output_shapes;
    for (GraphShape& shape : shapes) std::ranges::replace(shape, -1, 100);
    profile.push_back(
        {node.name, node.device, start, 10 + static_cast<std::int64_t>(profile.size()) * 20, 4096, shapes});
    start += 100;
  }
  writer.add_graph_profile("step 10", profile, 10);
}

void write_projector(const Path& directory) {
  SummaryWriter writer(directory / "projector");
  writer.add_scalar("x", 1);  // A run needs events to be listed.
  std::vector<float> points;
  std::vector<std::uint8_t> pictures;
  EmbeddingLabels labels{.header = {"name", "class"}};
  for (int k = 0; k < 50; ++k) {
    for (int d = 0; d < 5; ++d) points.push_back(std::sin(static_cast<float>(k * (d + 1)) * 0.1f));
    labels.rows.push_back({"point\t" + std::to_string(k), std::to_string(k % 3)});
    std::ranges::copy(picture(k, 16, 1), std::back_inserter(pictures));
  }
  writer.add_embedding("points", points, 5, labels, {.pixels = pictures, .size = {50, 1, 16, 16}}, 3);
  writer.add_embedding("plain", points, 10);
}

// Runs as a sweep leaves them, with hyperparameters and a layout.
void write_sweep(const Path& directory) {
  {
    SummaryWriter top(directory / "layout");
    top.add_custom_scalars_layout(
        {{"losses", {{"loss", {"Loss/.*"}}, {"band", {"m/mean", "m/min", "m/max"}, true}}}});
    for (int step = 0; step < 5; ++step) {
      const std::vector<ScalarPoint> points{
          {"m/mean", 1.0 * step}, {"m/min", step - 0.5}, {"m/max", step + 0.5}};
      top.add_scalar_batch(points, step);
    }
  }
  int k = 0;
  for (const double lr : {0.01, 0.001}) {
    for (const bool shuffle : {true, false}) {
      SummaryWriter writer(directory /
                           ("sweep/lr=" + std::to_string(lr) + ",shuffle=" + (shuffle ? "true" : "false")));
      writer.add_hparams_start({{"lr", lr},
                                {"shuffle", shuffle},
                                {"batch_size", std::int64_t{100}},
                                {"device", std::string("cpu")}},
                               1.7e9 + k);
      for (int step = 0; step < 5; ++step) {
        const std::vector<ScalarPoint> points{{"Loss/train", lr * 100 / (step + 1)},
                                              {"Loss/validation", lr * 120 / (step + 1)},
                                              {"Accuracy/train", 0.1 * step + k * 0.01}};
        writer.add_scalar_batch(points, step);
      }
      if (k < 3)
        writer.add_hparams_end(k == 1 ? SessionStatus::kFailure : SessionStatus::kSuccess, 1.7e9 + k + 60);
      if (k == 3) {
        // A process that is killed: no end.
        writer.flush();
        std::_Exit(0);
      }
      ++k;
    }
  }
}

// The metrics of a session may lie in runs below it.
void write_sub_runs(const Path& directory) {
  SummaryWriter session(directory / "nested/s");
  session.add_hparams_start({{"nested_lr", 0.5}});
  SummaryWriter train(directory / "nested/s/train"), validation(directory / "nested/s/val");
  for (int step = 0; step < 3; ++step) {
    train.add_scalar("accuracy", 0.5 + step * 0.1, step);
    validation.add_scalar("accuracy", 0.4 + step * 0.1, step);
  }
  session.add_scalar("own", 1);
}

// Lines of one chart, each a run.
void write_lines(const Path& directory) {
  const std::vector<ScalarPoint> lines{{"a", 1.0}, {"b", 2.0}};
  SummaryWriter chart(directory / "lines");
  chart.add_scalars("group/both", lines, 0);
}

// Two sessions of one run: the second goes on from step 5, and writes one tag only.
void write_resumed(const Path& directory) {
  {
    SummaryWriter first(directory / "resumed");
    for (int step = 0; step < 8; ++step) {
      first.add_scalar("again", step, step);
      first.add_scalar("not_again", step, step);
    }
  }
  SummaryWriter second(directory / "resumed", {.purge_step = 5});
  for (int step = 5; step < 10; ++step) second.add_scalar("again", step + 100, step);
}

void write_resumed_twice(const Path& directory) {
  for (int part = 0; part < 3; ++part) {
    SummaryWriter writer(directory / "in_parts", {.purge_step = 30 * part});
    for (int i = 30 * part; i < 30 * part + 30; ++i) writer.add_scalar("s", i, i, {.description = "kept"});
  }
}

void write_threads(const Path& directory) {
  SummaryWriter writer(directory / "threads");
  const auto work = [&](const char* tag) {
    for (int step = 0; step < 500; ++step) writer.add_scalar(tag, step, step);
  };
  std::thread one(work, "one"), two(work, "two");
  one.join();
  two.join();
}

void write_misuse(const Path& directory) {
  SummaryWriter writer(directory / "misuse");
  writer.add_hparams_start({{"misuse_lr", 0.1}});
  writer.add_scalar("s", 1, 0);
  int refused = 0;
  const auto refuse = [&](auto call) {
    try {
      call();
    } catch (const UsageError&) {
      ++refused;
    }
  };
  refuse([&] { writer.add_text("s", "text"); });
  refuse([&] { writer.add_scalar("", 1); });
  refuse([&] { writer.add_scalar("s", 1, std::int64_t{1} << 40); });
  writer.add_scalar("refused", refused, 0);
}

// Sessions that have other hyperparameters and metrics than those of the sweep: together with them, charts
// over all sessions would have nothing to draw.
void write_sessions(const Path& directory) {
  write_sub_runs(directory);
  write_misuse(directory);
}

// Two sessions, and an experiment in the top directory that shows one of their hyperparameters and one
// metric.
void write_experiment(const Path& directory) {
  for (const double lr : {0.1, 0.2}) {
    SummaryWriter writer(directory / (lr < 0.15 ? "a" : "b"));
    writer.add_hparams_start({{"lr", lr}, {"unlisted", true}});
    writer.add_scalar("loss", lr);
    writer.add_scalar("unlisted_metric", 1);
  }
  SummaryWriter top(directory);
  top.add_hparams_experiment(
      {.name = "named",
       .hparams = {{.name = "lr", .display_name = "rate", .interval = std::pair{0.0, 1.0}}},
       .metrics = {{.tag = "loss", .display_name = "the loss"}}});
}

// Adds a point, and another whenever a line comes in on stdin.
void write_live(const Path& directory) {
  SummaryWriter writer(directory / "live", {.flush_interval = std::chrono::milliseconds(200)});
  int step = 0;
  do {
    writer.add_scalar("tail", step, step);
    ++step;
  } while (std::getchar() != EOF);
}

// Writes as fast as it can, and says on stdout how many steps are in the file for certain. Every step is a
// scalar and a text of some thousand bytes, so that a kill meets the process in the
// middle of a write.
void write_endless(const Path& directory) {
  SummaryWriter writer(directory / "killed", {.flush_interval = std::chrono::milliseconds(1)});
  const std::string text(5000, 'x');
  for (int step = 0; step < 1'000'000; ++step) {
    writer.add_scalar("s", step, step);
    writer.add_text("t", text, step);
    if (step % 50 != 49) continue;
    writer.flush();
    std::printf("%d\n", step + 1);
    std::fflush(stdout);
  }
}

// Goes on with the run of write_endless() from step 20.
void write_continued(const Path& directory) {
  SummaryWriter writer(directory / "killed", {.purge_step = 20});
  for (int step = 20; step < 30; ++step) writer.add_scalar("s", step + 0.5, step);
}

// The runs of a large sweep.
void write_many(const Path& directory) {
  for (int run = 0; run < 1000; ++run) {
    SummaryWriter writer(directory / ("run" + std::to_string(1000 + run)));
    for (int step = 0; step < 20; ++step) writer.add_scalar("Loss/train", run + 0.05 * step, step);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::map<std::string_view, void (*)(const Path&)> special{
      {"live", write_live},       {"experiment", write_experiment}, {"sessions", write_sessions},
      {"endless", write_endless}, {"continued", write_continued},   {"many", write_many}};
  if (argc == 3 && special.contains(argv[2])) {
    special.at(argv[2])(argv[1]);
    return 0;
  }
  if (argc != 2) {
    std::fprintf(stderr, "usage: demo_logdir DIRECTORY [live|experiment|sessions|endless|continued|many]\n");
    return 2;
  }
  const Path directory = argv[1];
  write_values(directory);
  write_pictures(directory);
  write_text(directory);
  write_graphs(directory);
  write_projector(directory);
  write_lines(directory);
  write_resumed(directory);
  write_resumed_twice(directory);
  write_threads(directory);
  write_sweep(directory);  // Last: it ends like a process that was killed.
}
