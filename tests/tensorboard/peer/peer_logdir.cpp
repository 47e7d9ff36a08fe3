// Makes with our writer the calls that write_with_torch.py makes with PyTorch's. Usage: peer_logdir DIRECTORY
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "tbwriter/summary_writer.h"
#include "tests/tensorboard/pictures.h"

namespace {

using namespace sweep::tbwriter;

const Details at{.wall_time = 1.7e9};

void write_numbers(SummaryWriter& writer) {
  for (int step = 0; step < 5; ++step) {
    writer.add_scalar("scalar", 0.1 * step, step, at);
    writer.add_scalar("new_style", 0.1 * step, step, at);
  }
  const std::vector<ScalarPoint> lines{{"a", 1.5}, {"b", 2.5}};
  writer.add_scalars("group/lines", lines, 0, at);
  std::vector<float> values;
  for (int i = -500; i < 500; ++i) values.push_back(static_cast<float>(i * i * i) * 1e-6f);
  writer.add_histogram("histogram", values, 0, at);
  writer.add_histogram_counts("raw", {-0.5, 1.5, 8, 4, 9, {0, 1, 2}, {3, 0, 5}}, 0, at);
}

void write_pictures(SummaryWriter& writer) {
  const std::vector<std::uint8_t> pixels = picture(3, 24, 3);
  writer.add_image("image", pixels, {.height = 24, .width = 24, .channels = 3}, 0, at);
  std::vector<float> floats;
  for (const std::uint8_t value : planes(pixels, 3)) floats.push_back(static_cast<float>(value) / 255.0f);
  writer.add_image_grid("float_image", floats, {.count = 1, .channels = 3, .height = 24, .width = 24}, 0,
                        {.padding = 0}, at);
  std::vector<std::uint8_t> batch;
  for (int k = 0; k < 10; ++k) std::ranges::copy(planes(picture(k, 12, 3), 3), std::back_inserter(batch));
  writer.add_image_grid("images", batch, {.count = 10, .channels = 3, .height = 12, .width = 12}, 0,
                        {.padding = 0}, at);
  const Box boxes[] = {{.left = 10, .top = 20, .right = 80, .bottom = 90, .label = "cat"},
                       {.left = 40, .top = 10, .right = 100, .bottom = 60, .label = "a dog"}};
  writer.add_image_with_boxes("boxes", std::vector<std::uint8_t>(120 * 120, 128),
                              {.height = 120, .width = 120}, boxes, 0, at);
}

void write_curves(SummaryWriter& writer) {
  const std::vector<std::uint8_t> labels{0, 1, 1, 0, 1, 1};
  const std::vector<float> scores{0.1f, 0.9f, 0.4f, 0.35f, 0.8f, 0.7f}, weights{1, 2, 1, 3, 1, 2};
  writer.add_pr_curve("curve", labels, scores, 0, 127, at);
  writer.add_pr_curve("weighted", labels, scores, 0, 11, at, weights);
  const float tp[] = {3, 2, 1}, fp[] = {2, 1, 0}, tn[] = {0, 1, 2}, fn[] = {0, 1, 2},
              precision[] = {0.6f, 0.67f, 1}, recall[] = {1, 0.67f, 0.33f};
  writer.add_pr_curve("raw_curve", PrCurve{tp, fp, tn, fn, precision, recall}, 0, at);
}

void write_others(SummaryWriter& writer) {
  writer.add_text("text", "# Title\n\na **b**\n\n- c", 0, at);
  std::vector<float> sound;
  for (int i = 0; i < 2000; ++i) sound.push_back(0.5f * std::sin(static_cast<float>(i) * 0.05f));
  writer.add_audio("sound", sound, 8000, 1, 0, at);
  const std::vector<float> vertices{0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1};
  const std::vector<std::uint8_t> colors{255, 0, 0, 0, 255, 0, 0, 0, 255, 255, 255, 0};
  const std::vector<std::int32_t> faces{0, 1, 2, 0, 1, 3, 0, 2, 3};
  writer.add_mesh("mesh", {.vertices = vertices, .colors = colors, .faces = faces}, 0, at);
  writer.add_custom_scalars_layout(
      {{"losses", {{"loss", {"loss/.*", "scalar"}}, {"band", {"m/mean", "m/min", "m/max"}, true}}}});
  std::vector<float> points;
  EmbeddingLabels names;
  for (int k = 0; k < 9; ++k) {
    for (int d = 0; d < 4; ++d) points.push_back(static_cast<float>(k * (d + 1)) / 4);
    names.rows.push_back({"point " + std::to_string(k)});
  }
  writer.add_embedding("points", points, 4, names, {}, 3);
  writer.add_graph(
      {{{.name = "input", .op = "IO Node", .output_shapes = {{2, 4}}},
        {.name = "0/linear", .op = "aten::linear", .inputs = {"input"}, .output_shapes = {{2, 3}}},
        {.name = "1/relu", .op = "aten::relu", .inputs = {"0/linear"}, .output_shapes = {{2, 3}}}}});
}

void write_tensors(SummaryWriter& writer) {
  const std::int64_t shape[] = {2, 3};
  const auto add = [&](const char* tag, const auto& values) { writer.add_tensor(tag, values, shape, 0, at); };
  add("tensor_float", std::vector<float>{-4, -1, 2, 5, 8, 11});
  add("tensor_double", std::vector<double>{-4, -1, 2, 5, 8, 11});
  add("tensor_int64", std::vector<std::int64_t>{-4, -1, 2, 5, 8, 11});
  add("tensor_half", std::vector<Half>{{0xC400}, {0xBC00}, {0x4000}, {0x4500}, {0x4800}, {0x4980}});
  add("tensor_bfloat16", std::vector<BFloat16>{{0xC080}, {0xBF80}, {0x4000}, {0x40A0}, {0x4100}, {0x4130}});
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: peer_logdir DIRECTORY\n");
    return 2;
  }
  const std::filesystem::path directory = argv[1];
  SummaryWriter writer(directory / "run");
  write_numbers(writer);
  write_pictures(writer);
  write_curves(writer);
  write_others(writer);
  write_tensors(writer);
  SummaryWriter trial(directory / "run/trial");
  trial.add_hparams_start({{"lr", 0.25}, {"name", std::string("adam")}, {"flag", true}});
  trial.add_scalar("hparam/loss", 0.5);
}
