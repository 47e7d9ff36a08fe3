// Built-in kernels and NVIDIA's libraries, layer by layer on device 0: what the rule of kernel_rule.h goes
// by. Prints a row of JSON for each direction of each layer: multiplications, and microseconds of both.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "core/kernels/cuda/libraries/kernel_rule.h"

namespace sweep::cuda {
namespace {

constexpr int kRounds = 7, kRunsOfRound = 20;

std::string text_of(const ConvShape& s) {
  return fmt::format("conv {}x{}x{}, {} of {}x{}, stride {}", s.in_channels, s.in_height, s.in_width,
                     s.out_channels, s.kernel_height, s.kernel_width, s.stride_y);
}
std::string text_of(const LinearShape& s) {
  return fmt::format("linear {} to {}", s.in_features, s.out_features);
}
std::size_t inputs_of(const ConvShape& s) {
  return std::size_t{1} * s.in_channels * s.in_height * s.in_width;
}
std::size_t outputs_of(const ConvShape& s) {
  return std::size_t{1} * s.out_channels * s.out_height * s.out_width;
}
std::size_t inputs_of(const LinearShape& s) { return s.in_features; }
std::size_t outputs_of(const LinearShape& s) { return s.out_features; }

struct BuiltIn {
  Stream& stream;
  int images, slices;
  const LibraryArrays& arrays;

  void run(const ConvShape& s, Direction direction) const {
    const LibraryArrays& a = arrays;
    if (direction == Direction::kForward)
      conv_forward(stream, s, images, a.in, a.weight, a.bias, false, a.result);
    else if (direction == Direction::kBackwardWeights)
      conv_backward_weights(stream, s, images, slices, a.in, a.grad_out, a.result);
    else
      conv_backward_input(stream, s, images, a.grad_out, a.weight, false, a.result);
  }
  void run(const LinearShape& s, Direction direction) const {
    const LibraryArrays& a = arrays;
    const LinearGradient layer{s, a.in, a.grad_out, a.result};
    if (direction == Direction::kForward)
      linear_forward(stream, s, images, a.in, a.weight, a.bias, false, a.result);
    else if (direction == Direction::kBackwardWeights)
      linear_backward_weights(stream, {&layer, 1}, images, slices);
    else
      linear_backward_input(stream, s, images, a.grad_out, a.weight, false, a.result);
  }
};

int slices_of(const ConvShape& s, int images) { return conv_gradient_slices(s, images); }
int slices_of(const LinearShape& s, int images) { return linear_gradient_slices({&s, 1}, images); }

// Median microseconds of one run, in a graph of many.
template <class Run>
double time_of(Stream& stream, const Run& run) {
  run();  // loads kernels
  stream.wait();
  const Graph graph = stream.capture([&] {
    for (int i = 0; i < kRunsOfRound; ++i) run();
  });
  std::vector<double> seconds;
  const Event begin(Event::Kind::kTime), end(Event::Kind::kTime);
  for (int round = 0; round <= kRounds; ++round) {
    stream.record(begin);
    stream.launch(graph);
    stream.record(end);
    if (round > 0) seconds.push_back(end.seconds_since(begin));
  }
  std::sort(seconds.begin(), seconds.end());
  return 1e6 * seconds[seconds.size() / 2] / kRunsOfRound;
}

template <class Shape>
void measure(Stream& stream, const Shape& shape, int images) {
  const auto library = open_library<Shape>(0);
  const auto floats = [&](std::size_t count) {
    return to_device(stream, std::vector<float>(count, 0.25f), "an array of the benchmark");
  };
  const std::size_t batch = images;
  const int slices = slices_of(shape, images);
  const auto in = floats(batch * inputs_of(shape)), grad_out = floats(batch * outputs_of(shape)),
             weight = floats(shape.weights()), bias = floats(outputs_of(shape)),
             result = floats(
                 std::max({in.size(), grad_out.size(), std::size_t{1} * slices * shape.gradient_floats()}));
  const Array<std::byte> workspace(kMaxWorkspace, "the library's workspace");
  const LibraryArrays arrays{in.data(),       weight.data(), shape.bias ? bias.data() : nullptr,
                             grad_out.data(), result.data(), workspace.data()};
  constexpr const char* kNames[] = {"forward", "weights", "input"};  // of Direction's values
  for (const Direction direction :
       {Direction::kForward, Direction::kBackwardWeights, Direction::kBackwardInput}) {
    const char* name = kNames[static_cast<int>(direction)];
    const LibraryTask task{.direction = direction, .images = images};
    const BuiltIn built_in{stream, images, slices, arrays};
    const double own = time_of(stream, [&] { built_in.run(shape, direction); });
    const auto plan = library != nullptr ? library->plan(shape, task, kMaxWorkspace) : nullptr;
    const double theirs = plan ? time_of(stream, [&] { plan->run(stream, arrays); }) : 0;
    fmt::print(
        R"({{"layer": "{}", "batch": {}, "direction": "{}", "products": {}, "built-in": {:.1f}, "library": {:.1f}}})"
        "\n",
        text_of(shape), images, name, products(shape, task), own, theirs);
  }
  std::fflush(stdout);
}

// A layer like those of PyTorch's examples, with padding that keeps the size.
ConvShape conv(int channels, int size, int out_channels, int kernel, int stride = 1) {
  const int out = (size - 1) / stride + 1, pad = kernel / 2;
  return {.in_channels = channels,
          .in_height = size,
          .in_width = size,
          .out_channels = out_channels,
          .out_height = out,
          .out_width = out,
          .kernel_height = kernel,
          .kernel_width = kernel,
          .stride_y = stride,
          .stride_x = stride,
          .pad_y = pad,
          .pad_x = pad,
          .dilation_y = 1,
          .dilation_x = 1,
          .groups = 1,
          .bias = true};
}

void run() {
  use_device(0);
  Stream stream;
  for (const int images : {16, 32, 128, 512}) {
    for (const ConvShape& shape :
         {conv(1, 28, 16, 5), conv(3, 32, 16, 3), conv(16, 32, 16, 3), conv(16, 32, 32, 3, 2),
          conv(16, 32, 32, 1, 2), conv(32, 16, 32, 3), conv(32, 16, 64, 3, 2), conv(64, 8, 64, 3),
          conv(3, 32, 64, 3), conv(64, 32, 64, 3), conv(128, 16, 128, 3), conv(256, 8, 256, 3),
          conv(32, 23, 64, 5), conv(64, 9, 128, 5), conv(256, 8, 64, 1)})
      measure(stream, shape, images);
    for (const LinearShape& shape :
         {LinearShape{784, 128, true}, LinearShape{512, 512, true}, LinearShape{512, 2, true},
          LinearShape{2048, 1024, true}, LinearShape{4096, 4096, true}})
      measure(stream, shape, images);
  }
}

}  // namespace
}  // namespace sweep::cuda

int main() {
  try {
    sweep::cuda::run();
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
