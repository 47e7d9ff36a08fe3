// library.h on the host, for tests: plain loops that keep the same promises and use the same freedoms. If a
// task does not ask for determinism, each run adds up forward or backward at random. The workspace is
// overwritten with NaNs, so that two plans whose workspaces overlap while both are in use show.
#include "core/kernels/cuda/libraries/library.h"

#include <atomic>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <stdexcept>
#include <utility>

#include "core/base/error.h"
#include "core/kernels/cuda/libraries/kernel_rule.h"
#include "core/kernels/cuda/runtime/cuda_devices.h"
#include "tests/cudart/machine.h"

namespace sweep {

std::vector<LibraryInfo> list_cuda_libraries() {
  return {{.name = "cuBLASLt", .use = "wide linear layers", .version = "stand-in"},
          {.name = "cuDNN", .use = "wide convolutions", .version = "stand-in"},
          {.name = "NCCL", .use = "one network on several GPUs", .version = "stand-in"}};
}

namespace cuda {
namespace {

thread_local cudart::LibraryLimits limits;
std::atomic<int> opened{0};

std::size_t index(int i) { return static_cast<std::size_t>(i); }

float relu(float value) { return value <= 0 ? 0 : value; }

// The order of a sum.
enum class SumOrder { kForward, kBackward };

int nth(int n, int count, SumOrder order) { return order == SumOrder::kForward ? n : count - 1 - n; }

// A linear layer is a convolution of images of one pixel.
ConvShape conv_shape(const LinearShape& s) {
  return {.in_channels = s.in_features, .out_channels = s.out_features, .bias = s.bias};
}
const ConvShape& conv_shape(const ConvShape& s) { return s; }

// Calls body(out, in, weight, n) for the products of a convolution, a row of the output at a time: of n
// outputs from `out` on and every stride_x-th input from `in` on with one weight.
template <class Body>
void for_each_row(const ConvShape& s, int images, SumOrder order, const Body& body) {
  for (int i = 0; i < images; ++i)
    for (int o = 0; o < s.out_channels; ++o)
      for (int g = 0; g < s.group_in(); ++g)
        for (int ky = 0; ky < s.kernel_height; ++ky)
          for (int kx = 0; kx < s.kernel_width; ++kx) {
            const int image = nth(i, images, order), channel = nth(o, s.out_channels, order),
                      c = nth(g, s.group_in(), order);
            const int in_channel = channel / s.group_out() * s.group_in() + c;
            const auto column = [&](int x) { return x * s.stride_x - s.pad_x + kx * s.dilation_x; };
            int begin = 0, end = s.out_width;
            while (begin < end && column(begin) < 0) ++begin;
            while (begin < end && column(end - 1) >= s.in_width) --end;
            for (int y = 0; begin < end && y < s.out_height; ++y) {
              const int in_y = y * s.stride_y - s.pad_y + ky * s.dilation_y;
              if (in_y < 0 || in_y >= s.in_height) continue;
              body(index(((image * s.out_channels + channel) * s.out_height + y) * s.out_width + begin),
                   index(((image * s.in_channels + in_channel) * s.in_height + in_y) * s.in_width +
                         column(begin)),
                   index(((channel * s.group_in() + c) * s.kernel_height + ky) * s.kernel_width + kx),
                   index(end - begin));
            }
          }
}

void forward(const ConvShape& s, const LibraryTask& task, SumOrder order, const LibraryArrays& arrays) {
  const int plane = s.out_height * s.out_width, count = task.images * s.out_channels * plane;
  for (int i = 0; i < count; ++i)
    arrays.result[index(i)] = s.bias ? arrays.bias[index(i / plane % s.out_channels)] : 0;
  for_each_row(s, task.images, order,
               [&](std::size_t out, std::size_t in, std::size_t weight, std::size_t n) {
                 const float factor = arrays.weight[weight];
                 for (std::size_t x = 0; x < n; ++x, in += index(s.stride_x))
                   arrays.result[out + x] += arrays.in[in] * factor;
               });
  if (!task.relu) return;
  for (int i = 0; i < count; ++i) arrays.result[index(i)] = relu(arrays.result[index(i)]);
}

void weights(const ConvShape& s, const LibraryTask& task, SumOrder order, const LibraryArrays& arrays) {
  std::memset(arrays.result, 0, index(s.gradient_floats()) * sizeof(float));
  for_each_row(s, task.images, order,
               [&](std::size_t out, std::size_t in, std::size_t weight, std::size_t n) {
                 float sum = arrays.result[weight];
                 for (std::size_t x = 0; x < n; ++x, in += index(s.stride_x))
                   sum += arrays.in[in] * arrays.grad_out[out + x];
                 arrays.result[weight] = sum;
               });
  if (!s.bias) return;
  const int plane = s.out_height * s.out_width;
  for (int i = 0; i < task.images * s.out_channels * plane; ++i)
    arrays.result[index(s.weights() + i / plane % s.out_channels)] += arrays.grad_out[index(i)];
}

void input(const ConvShape& s, const LibraryTask& task, SumOrder order, const LibraryArrays& arrays) {
  if (!task.add) {
    std::memset(arrays.result, 0,
                index(task.images * s.in_channels * s.in_height * s.in_width) * sizeof(float));
  }
  for_each_row(s, task.images, order,
               [&](std::size_t out, std::size_t in, std::size_t weight, std::size_t n) {
                 const float factor = arrays.weight[weight];
                 for (std::size_t x = 0; x < n; ++x, in += index(s.stride_x))
                   arrays.result[in] += arrays.grad_out[out + x] * factor;
               });
}

// The order of one run: random unless the plan promises a fixed one.
SumOrder sum_order(bool ordered) {
  static thread_local std::minstd_rand chance;
  return ordered || chance() / 1024 % 2 == 0 ? SumOrder::kForward : SumOrder::kBackward;
}

void run(const ConvShape& shape, const LibraryTask& task, SumOrder order, const LibraryArrays& arrays) {
  switch (task.direction) {
    case Direction::kForward:
      return forward(shape, task, order, arrays);
    case Direction::kBackwardWeights:
      return weights(shape, task, order, arrays);
    case Direction::kBackwardInput:
      return input(shape, task, order, arrays);
  }
}

// Where LibraryTask says that arrays begin: a library's vector loads need it.
void require_aligned(const LibraryTask& task, const LibraryArrays& arrays) {
  const auto require = [](const void* array, int floats_before = 0) {
    constexpr std::uintptr_t kAlignment = 256;
    if ((reinterpret_cast<std::uintptr_t>(array) - index(floats_before) * sizeof(float)) % kAlignment != 0)
      throw std::logic_error("a library gets an array at an address that its task does not allow");
  };
  for (const float* array : {arrays.in, arrays.grad_out, static_cast<const float*>(arrays.result)})
    require(array);
  if (arrays.weight != nullptr) require(arrays.weight, task.weight_offset);
  if (arrays.bias != nullptr) require(arrays.bias, task.bias_offset);
}

class Plan final : public LibraryPlan {
 public:
  Plan(const ConvShape& shape, const LibraryTask& task)
      : shape_(shape),
        task_(task),
        workspace_bytes_(limits.workspace_bytes),
        ordered_(task.deterministic || !limits.has_any_order) {}

  std::size_t workspace_bytes() const override { return workspace_bytes_; }
  bool deterministic() const override { return ordered_; }

  void run(Stream& stream, const LibraryArrays& arrays) const override {
    if (limits.refuses) throw DeviceError("cuda: error of a library that refuses");
    require_aligned(task_, arrays);
    if (!std::exchange(has_run_, true) && stream.is_capturing())
      throw std::logic_error("a library's plan runs for the first time in a capture");
    stream.enqueue([shape = shape_, task = task_, arrays, bytes = workspace_bytes_, ordered = ordered_] {
      std::memset(arrays.workspace, 0xFF, bytes);  // NaNs
      cuda::run(shape, task, sum_order(ordered), arrays);
    });
  }

 private:
  ConvShape shape_;
  LibraryTask task_;
  std::size_t workspace_bytes_;
  bool ordered_;
  mutable bool has_run_ = false;
};

template <class Shape>
class Library final : public LayerLibrary<Shape> {
 public:
  explicit Library(std::string name) : name_(std::move(name)) {}
  std::string name() const override { return name_ + " " + limits.version; }
  std::unique_ptr<LibraryPlan> plan(const Shape& shape, const LibraryTask& task,
                                    std::size_t workspace_limit) const override {
    if (task.images < limits.fewest_images || limits.workspace_bytes > workspace_limit) return nullptr;
    if (task.direction == Direction::kBackwardInput && !limits.has_input_gradients) return nullptr;
    return std::make_unique<Plan>(conv_shape(shape), task);
  }

 private:
  std::string name_;
};

}  // namespace

void cudart::set_library_limits(const LibraryLimits& value) {
  limits = value;
  forget_shared_libraries();
}

int cudart::libraries_opened() { return opened; }

template <>
std::shared_ptr<const LayerLibrary<LinearShape>> open_library(int /*device*/) {
  ++opened;
  return limits.installed ? std::make_shared<Library<LinearShape>>("cuBLASLt") : nullptr;
}

template <>
std::shared_ptr<const LayerLibrary<ConvShape>> open_library(int /*device*/) {
  ++opened;
  return limits.installed ? std::make_shared<Library<ConvShape>>("cuDNN") : nullptr;
}

}  // namespace cuda
}  // namespace sweep
