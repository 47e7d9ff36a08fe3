// The convolution kernels alone, on one core, for shapes from the example networks.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <string>

#include "core/kernels/cpu/kernels/conv_kernels.h"
#include "core/kernels/cpu/kernels/winograd/winograd.h"
#include "tools/benchmarks/engine_benchmark.h"

namespace sweep {
namespace {

using cpu::AlignedBuffer;
using cpu::kLanes;

struct ConvCase {
  std::size_t in_channels, size, out_channels, kernel, stride, padding;
};

// A convolution of one block of images, with all arrays that its three kernels need.
struct Convolution {
  explicit Convolution(const ConvCase& c) {
    const std::size_t in = c.size + 2 * c.padding, out = (in - c.kernel) / c.stride + 1;
    g = {c.in_channels,
         in,
         in,
         c.out_channels,
         out,
         out,
         c.kernel,
         c.kernel,
         c.stride,
         c.stride,
         1,
         1,
         cpu::conflict_free_stride(in * in) * kLanes,
         c.padding,
         c.padding};
    gradient = {nullptr, out, out + 2 * cpu::kGradientBorder, cpu::kGradientBorder, 1, 1};
    input = AlignedBuffer(g.in_channels * g.in_plane);
    weights = AlignedBuffer(g.in_channels * g.out_channels * g.taps());
    packed = AlignedBuffer(weights.size());
    transposed = AlignedBuffer(weights.size());
    output = AlignedBuffer(g.out_channels * out * out * kLanes);
    spread = AlignedBuffer(g.out_channels * gradient.channel_floats());
    grad_in = AlignedBuffer(g.in_channels * c.size * c.size * kLanes);
    for (AlignedBuffer* buffer : {&input, &weights, &spread})
      std::fill_n(buffer->data(), buffer->size(), 0.25f);
    gradient.data = spread.data();
    cpu::pack_conv_weights(g, weights.data(), false, packed.data());
    cpu::pack_conv_weights(g, weights.data(), true, transposed.data());
  }
  double flops() const {
    return 2.0 * static_cast<double>(g.in_channels * g.out_channels * g.taps() * g.out_height * g.out_width *
                                     kLanes);
  }

  cpu::ConvGeometry g{};
  cpu::ConvGradient gradient{};
  AlignedBuffer input, weights, packed, transposed, output, spread, grad_in;
};

// The same by Winograd's algorithm, where ConvOp uses it. FLOP/s count the
// multiply-adds of the direct formula.
struct WinogradConvolution : Convolution {
  explicit WinogradConvolution(const ConvCase& c)
      : Convolution(c),
        frequencies(cpu::winograd_weight_floats(g)),
        frequencies_transposed(frequencies.size()),
        scratch(cpu::winograd_scratch_floats(g)) {
    cpu::winograd_transform_weights(g, weights.data(), false, frequencies.data());
    cpu::winograd_transform_weights(g, weights.data(), true, frequencies_transposed.data());
  }

  AlignedBuffer frequencies, frequencies_transposed, scratch;
};

template <class Convolution, class Kernel>
void add(const std::string& name, const ConvCase& c, Kernel kernel) {
  benchmark::RegisterBenchmark(name.c_str(), [c, kernel](benchmark::State& state) {
    Convolution conv(c);
    for (auto _ : state) {
      kernel(conv);
      benchmark::ClobberMemory();
    }
    state.counters["FLOP/s"] = benchmark::Counter(conv.flops() * static_cast<double>(state.iterations()),
                                                  benchmark::Counter::kIsRate);
  })->Unit(benchmark::kMicrosecond);
}

}  // namespace

void register_conv_benchmarks() {
  for (const ConvCase& c : {ConvCase{1, 28, 6, 5, 1, 0},
                            {6, 12, 12, 5, 1, 0},
                            {32, 23, 64, 5, 1, 0},
                            {64, 9, 128, 5, 1, 0},
                            {16, 32, 16, 3, 1, 1},
                            {32, 16, 32, 3, 1, 1},
                            {64, 8, 64, 3, 1, 1},
                            {32, 16, 64, 3, 2, 1}}) {
    const std::string shape = std::to_string(c.in_channels) + "x" + std::to_string(c.size) + "x" +
                              std::to_string(c.size) + "_to_" + std::to_string(c.out_channels) + "_k" +
                              std::to_string(c.kernel) +
                              (c.stride > 1 ? "_s" + std::to_string(c.stride) : "");
    add<Convolution>("conv/" + shape + "/forward", c, [](Convolution& v) {
      cpu::conv_forward(v.g, v.input.data(), v.packed.data(), nullptr, true, v.output.data());
    });
    add<Convolution>("conv/" + shape + "/weights", c, [](Convolution& v) {
      cpu::conv_backward_weights(v.g, v.input.data(), v.gradient, v.weights.data());
    });
    add<Convolution>("conv/" + shape + "/input", c, [](Convolution& v) {
      cpu::conv_backward_input(v.g, v.gradient, v.transposed.data(), v.grad_in.data());
    });
    if (cpu::use_winograd(Convolution(c).g)) {
      add<WinogradConvolution>("conv/" + shape + "/forward/winograd", c, [](WinogradConvolution& v) {
        cpu::winograd_forward(v.g, v.input.data(), v.frequencies.data(), nullptr, true, v.output.data(),
                              v.scratch.data());
      });
      add<WinogradConvolution>("conv/" + shape + "/weights/winograd", c, [](WinogradConvolution& v) {
        cpu::winograd_backward_weights(v.g, v.input.data(), v.gradient, kLanes, v.weights.data(),
                                       v.scratch.data());
      });
      add<WinogradConvolution>("conv/" + shape + "/input/winograd", c, [](WinogradConvolution& v) {
        cpu::winograd_backward_input(v.g, v.gradient, v.frequencies_transposed.data(), v.grad_in.data(),
                                     v.scratch.data());
      });
    }
  }
}

}  // namespace sweep
