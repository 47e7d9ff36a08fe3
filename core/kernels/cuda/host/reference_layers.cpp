#include "core/kernels/cuda/host/reference_layers.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

namespace sweep::cuda::host {
namespace {

std::size_t index(int i) { return static_cast<std::size_t>(i); }

// Calls body(index) for every value of a channel.
template <class Body>
void for_each_value(const BatchNormShape& s, int images, int channel, const Body& body) {
  for (int image = 0; image < images; ++image)
    for (int i = 0; i < s.plane; ++i) body(index((image * s.channels + channel) * s.plane + i));
}

void train(const BatchNormShape& s, int images, std::size_t c, const LibraryArrays& a) {
  const double count = static_cast<double>(images) * s.plane;
  double sum = 0, square = 0;
  for_each_value(s, images, static_cast<int>(c), [&](std::size_t i) { sum += static_cast<double>(a.in[i]); });
  const double mean = sum / count;
  for_each_value(s, images, static_cast<int>(c), [&](std::size_t i) {
    square += (static_cast<double>(a.in[i]) - mean) * (static_cast<double>(a.in[i]) - mean);
  });
  a.mean[c] = static_cast<float>(mean);
  a.inverse[c] = static_cast<float>(1 / std::sqrt(square / count + static_cast<double>(s.eps)));
  a.running_mean[c] = s.momentum * a.mean[c] + (1 - s.momentum) * a.running_mean[c];
  a.running_var[c] =
      s.momentum * static_cast<float>(square / (count - 1)) + (1 - s.momentum) * a.running_var[c];
}

void backward(const BatchNormShape& s, int images, std::size_t c, bool add, const LibraryArrays& a) {
  const double count = static_cast<double>(images) * s.plane;
  double sum = 0, product = 0;
  const auto normal = [&](std::size_t i) {
    return (static_cast<double>(a.in[i]) - static_cast<double>(a.mean[c])) *
           static_cast<double>(a.inverse[c]);
  };
  for_each_value(s, images, static_cast<int>(c), [&](std::size_t i) {
    sum += static_cast<double>(a.grad_out[i]);
    product += static_cast<double>(a.grad_out[i]) * normal(i);
  });
  for_each_value(s, images, static_cast<int>(c), [&](std::size_t i) {
    const double g = static_cast<double>(a.weight[c]) * static_cast<double>(a.inverse[c]) *
                     (static_cast<double>(a.grad_out[i]) - (sum + normal(i) * product) / count);
    a.result[i] = (add ? a.result[i] : 0.0f) + static_cast<float>(g);
  });
  a.grad_parameters[c] = static_cast<float>(product);
  a.grad_parameters[index(s.channels) + c] = static_cast<float>(sum);
}

// The inputs begin … end − 1 of an output, along one axis. size: of the window with its padding.
struct Window {
  int begin, end, size;
};

Window window_of(bool adaptive, int o, int in, int out, int kernel, int stride, int pad) {
  if (adaptive) {
    const int begin = o * in / out, end = ((o + 1) * in + out - 1) / out;
    return {begin, end, end - begin};
  }
  const int begin = o * stride - pad;
  return {std::max(begin, 0), std::min(begin + kernel, in), kernel};
}

void pool_average(const std::vector<std::size_t>& ins, int count, std::size_t out, bool backward,
                  const LibraryArrays& a) {
  const float share = 1 / static_cast<float>(count);
  float sum = 0;
  for (const std::size_t in : ins) {
    if (backward) {
      a.result[in] += a.grad_out[out] * share;
    } else {
      sum += a.in[in];
    }
  }
  if (!backward) a.result[out] = sum * share;
}

void pool_maximum(const std::vector<std::size_t>& ins, std::size_t out, bool backward,
                  const LibraryArrays& a) {
  std::size_t best = ins.at(0);
  for (const std::size_t in : ins) {
    if (a.in[in] > a.in[best] || std::isnan(a.in[in])) best = in;
  }
  if (!backward) {
    a.result[out] = a.in[best];
    return;
  }
  // cuDNN finds the maximum again by the output that forward gave. Without that output, the gradient is lost.
  const bool found = a.out[out] == a.in[best] || std::isnan(a.in[best]);
  a.result[best] += found ? a.grad_out[out] : std::nanf("");
}

}  // namespace

void run_reference(const BatchNormShape& s, const LibraryTask& task, const LibraryArrays& a) {
  for (std::size_t c = 0; c < index(s.channels); ++c) {
    if (task.direction == Direction::kBackwardInput) {
      backward(s, task.images, c, task.add, a);
      continue;
    }
    if (task.direction == Direction::kForward) train(s, task.images, c, a);
    const bool training = task.direction == Direction::kForward;
    const float mean = training ? a.mean[c] : a.running_mean[c],
                inverse = training ? a.inverse[c] : 1 / std::sqrt(a.running_var[c] + s.eps);
    for_each_value(s, task.images, static_cast<int>(c), [&](std::size_t i) {
      a.result[i] = a.weight[c] * (a.in[i] - mean) * inverse + a.bias[c];
    });
  }
}

void run_reference(const PoolLayer& layer, const LibraryTask& task, const LibraryArrays& a) {
  const PoolShape& s = layer.shape;
  const bool backward = task.direction == Direction::kBackwardInput,
             adaptive = layer.average == Average::kAdaptive;
  const int planes = task.images * s.channels;
  if (backward && !task.add)
    std::memset(a.result, 0, index(planes * s.in_height * s.in_width) * sizeof(float));
  for (int plane = 0; plane < planes; ++plane)
    for (int y = 0; y < s.out_height; ++y)
      for (int x = 0; x < s.out_width; ++x) {
        const Window rows =
            window_of(adaptive, y, s.in_height, s.out_height, s.kernel_height, s.stride_y, s.pad_y);
        const Window columns =
            window_of(adaptive, x, s.in_width, s.out_width, s.kernel_width, s.stride_x, s.pad_x);
        std::vector<std::size_t> ins;
        for (int iy = rows.begin; iy < rows.end; ++iy)
          for (int ix = columns.begin; ix < columns.end; ++ix)
            ins.push_back(index((plane * s.in_height + iy) * s.in_width + ix));
        const std::size_t out = index((plane * s.out_height + y) * s.out_width + x);
        if (!layer.average) {
          pool_maximum(ins, out, backward, a);
        } else {
          const bool padded = layer.average == Average::kWithPadding;
          pool_average(ins, padded ? rows.size * columns.size : static_cast<int>(ins.size()), out, backward,
                       a);
        }
      }
}

}  // namespace sweep::cuda::host
