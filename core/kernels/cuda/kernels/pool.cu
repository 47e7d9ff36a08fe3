// Grid of all kernels: blocks_for(count) blocks of 256 threads. Forward, a thread computes one output;
// backward, one input, whose gradient it gathers from the windows that contain it. So no two threads write to
// the same element, and overlapping windows need no atomics.
#include "core/kernels/cuda/kernels/pool.h"

#include "core/kernels/cuda/runtime/kernel.h"

namespace sweep::cuda {
namespace {

// Rows or columns begin … end − 1.
struct Span {
  int begin, end;
  __device__ int length() const { return end - begin; }
};

__device__ int smaller(int a, int b) { return a < b ? a : b; }

// The rows of a pooling, or its columns.
struct Axis {
  int in, out, kernel, stride, pad;  // kernel 0: adaptive

  // The part of output o's window that lies inside the image. Adaptive: ⌊o · in / out⌋ to
  // ⌈(o + 1) · in / out⌉ − 1.
  __device__ Span window(int o) const {
    if (kernel == 0) return {o * in / out, ((o + 1) * in + out - 1) / out};
    const int start = o * stride - pad;
    return {start < 0 ? 0 : start, smaller(start + kernel, in)};
  }

  // The outputs whose windows contain input i.
  __device__ Span outputs_over(int i) const {
    if (kernel > 0) {
      const int first = i + pad - kernel + 1;  // start of the first such window, plus the padding
      return {first <= 0 ? 0 : (first + stride - 1) / stride, smaller((i + pad) / stride + 1, out)};
    }
    const int begin = i * out / in;
    int end = begin + 1;
    while (end < out && end * in / out <= i) ++end;
    return {begin, end};
  }
};
__device__ Axis rows_of(const PoolShape& s) {
  return {s.in_height, s.out_height, s.kernel_height, s.stride_y, s.pad_y};
}
__device__ Axis columns_of(const PoolShape& s) {
  return {s.in_width, s.out_width, s.kernel_width, s.stride_x, s.pad_x};
}

__global__ void max_forward_kernel(PoolShape s, int count, const float* in, float* out,
                                   std::int32_t* argmax) {
  for_each_index(count, [=](int i) {
    const int x = i % s.out_width, y = i / s.out_width % s.out_height,
              plane = i / (s.out_width * s.out_height);
    const float* values = in + static_cast<std::ptrdiff_t>(plane) * s.in_height * s.in_width;
    const Span rows = rows_of(s).window(y), columns = columns_of(s).window(x);
    int best = rows.begin * s.in_width + columns.begin;
    float largest = values[best];
    for (int iy = rows.begin; iy < rows.end; ++iy) {
      for (int ix = columns.begin; ix < columns.end; ++ix) {
        const float value = values[iy * s.in_width + ix];
        if (value > largest || value != value) {
          largest = value;
          best = iy * s.in_width + ix;
        }
      }
    }
    out[i] = largest;
    argmax[i] = best;
  });
}

__global__ void max_backward_kernel(PoolShape s, int count, const float* grad_out, const std::int32_t* argmax,
                                    bool add, float* grad_in) {
  for_each_index(count, [=](int i) {
    const int x = i % s.in_width, y = i / s.in_width % s.in_height, plane = i / (s.in_width * s.in_height);
    const Span rows = rows_of(s).outputs_over(y), columns = columns_of(s).outputs_over(x);
    float sum = 0.0f;
    for (int oy = rows.begin; oy < rows.end; ++oy) {
      for (int ox = columns.begin; ox < columns.end; ++ox) {
        const int o = (plane * s.out_height + oy) * s.out_width + ox;
        if (argmax[o] == y * s.in_width + x) sum += grad_out[o];
      }
    }
    grad_in[i] = add ? grad_in[i] + sum : sum;
  });
}

// The weight of an element in output (y, x): one over the number of elements averaged.
__device__ float weight_of(const PoolShape& s, bool with_padding, int y, int x) {
  if (with_padding) return 1.0f / static_cast<float>(s.kernel_height * s.kernel_width);
  return 1.0f / static_cast<float>(rows_of(s).window(y).length() * columns_of(s).window(x).length());
}

__global__ void avg_forward_kernel(PoolShape s, bool with_padding, int count, const float* in, float* out) {
  for_each_index(count, [=](int i) {
    const int x = i % s.out_width, y = i / s.out_width % s.out_height,
              plane = i / (s.out_width * s.out_height);
    const float* values = in + static_cast<std::ptrdiff_t>(plane) * s.in_height * s.in_width;
    const Span rows = rows_of(s).window(y), columns = columns_of(s).window(x);
    float sum = 0.0f;
    for (int iy = rows.begin; iy < rows.end; ++iy)
      for (int ix = columns.begin; ix < columns.end; ++ix) sum += values[iy * s.in_width + ix];
    out[i] = sum * weight_of(s, with_padding, y, x);
  });
}

__global__ void avg_backward_kernel(PoolShape s, bool with_padding, int count, const float* grad_out,
                                    bool add, float* grad_in) {
  for_each_index(count, [=](int i) {
    const int x = i % s.in_width, y = i / s.in_width % s.in_height, plane = i / (s.in_width * s.in_height);
    const Span rows = rows_of(s).outputs_over(y), columns = columns_of(s).outputs_over(x);
    float sum = 0.0f;
    for (int oy = rows.begin; oy < rows.end; ++oy) {
      for (int ox = columns.begin; ox < columns.end; ++ox) {
        sum += grad_out[(plane * s.out_height + oy) * s.out_width + ox] * weight_of(s, with_padding, oy, ox);
      }
    }
    grad_in[i] = add ? grad_in[i] + sum : sum;
  });
}

int inputs(const PoolShape& s, int images) { return images * s.channels * s.in_height * s.in_width; }
int outputs(const PoolShape& s, int images) { return images * s.channels * s.out_height * s.out_width; }

}  // namespace

void max_pool_forward(Stream& stream, const PoolShape& s, int images, const float* in, float* out,
                      std::int32_t* argmax) {
  launch(stream, max_forward_kernel, blocks_for(outputs(s, images)), {kThreads}, s, outputs(s, images), in,
         out, argmax);
}

void max_pool_backward(Stream& stream, const PoolShape& s, int images, const float* grad_out,
                       const std::int32_t* argmax, bool add, float* grad_in) {
  launch(stream, max_backward_kernel, blocks_for(inputs(s, images)), {kThreads}, s, inputs(s, images),
         grad_out, argmax, add, grad_in);
}

void avg_pool_forward(Stream& stream, const PoolShape& s, bool with_padding, int images, const float* in,
                      float* out) {
  launch(stream, avg_forward_kernel, blocks_for(outputs(s, images)), {kThreads}, s, with_padding,
         outputs(s, images), in, out);
}

void avg_pool_backward(Stream& stream, const PoolShape& s, bool with_padding, int images,
                       const float* grad_out, bool add, float* grad_in) {
  launch(stream, avg_backward_kernel, blocks_for(inputs(s, images)), {kThreads}, s, with_padding,
         inputs(s, images), grad_out, add, grad_in);
}

}  // namespace sweep::cuda
