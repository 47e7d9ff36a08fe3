// Weight gradients of several linear layers, for batches that are so small that all images of a tile fit into
// shared memory at once: one wait for device memory, and one block adds up all slices of its sums.
//
// A block computes a tile of the gradient of one layer, kSide outputs × kSide inputs. Each group of
// kGroupThreads threads has a part of the images, a thread four sums; then each thread adds up the slices of
// one sum, in order. The bits are those of linear_backward_weights() and the sum of its slices.
#pragma once

#include <span>

#include "core/kernels/cuda/kernels/linear.h"
#include "core/kernels/cuda/kernels/product.h"
#include "core/kernels/cuda/runtime/kernel.h"

namespace sweep::cuda {

struct StackGradientTiles {
  static constexpr int kSide = 16, kThreadSide = 2;
  static constexpr int kTileThreads = kSide * kSide;  // one for each sum, in the end
  static constexpr int kThreadsAcross = kSide / kThreadSide;
  static constexpr int kGroupThreads = kThreadsAcross * kThreadsAcross;
  static constexpr int kMaxSlices = kTileThreads / kGroupThreads;
  static constexpr int kMaxImages = 256;

  struct Layer {
    const float *in, *grad_out;  // [images][inputs], [images][outputs]
    int inputs, outputs;
    int columns;  // of the gradient: the inputs, and one of the biases
    int offset;   // of the layer's parameters
    int first_block, tiles_across;
  };

  int count = 0, blocks = 0, images = 0, slices = 1;
  Layer layers[kMaxGradients] = {};

  /// Whether it can do a batch of `images`, whose sums have `slices` slices.
  static bool fits(int images, int slices) { return images <= kMaxImages && slices <= kMaxSlices; }

  StackGradientTiles(std::span<const LinearGradient> gradients, std::span<const int> offsets, int images_,
                     int slices_)
      : images(images_), slices(slices_) {
    for (const LinearGradient& gradient : gradients) {
      const LinearShape& s = gradient.shape;
      Layer& layer = layers[count];
      layer = {.in = gradient.in,
               .grad_out = gradient.grad_out,
               .inputs = s.in_features,
               .outputs = s.out_features,
               .columns = s.in_features + (s.bias ? 1 : 0),
               .offset = offsets[static_cast<std::size_t>(count)],
               .first_block = blocks,
               .tiles_across = 0};
      layer.tiles_across = ceil_div(layer.columns, kSide);
      blocks += layer.tiles_across * ceil_div(layer.outputs, kSide);
      ++count;
    }
  }

  /// Floats of shared memory that gradient() needs.
  int shared_floats() const { return 2 * images * kSide + slices * kTileThreads; }

  /// The block's tile, and the thread's element of it.
  struct Tile {
    int layer, first_row, first_column;
    int parameter;  // of the thread's element; −1: it has none
  };
  __device__ Tile tile() const {
    const int block = static_cast<int>(blockIdx.x), thread = static_cast<int>(threadIdx.x);
    int l = 0;
    while (l + 1 < count && block >= layers[l + 1].first_block) ++l;
    const Layer& layer = layers[l];
    const int down = (block - layer.first_block) / layer.tiles_across,
              across = block - layer.first_block - down * layer.tiles_across;
    Tile tile{l, down * kSide, across * kSide, -1};
    const int m = tile.first_row + thread / kSide, n = tile.first_column + thread % kSide;
    if (m < layer.outputs && n < layer.columns)
      tile.parameter =
          layer.offset + (n == layer.inputs ? layer.outputs * layer.inputs + m : m * layer.inputs + n);
    return tile;
  }

  /// The gradient of the thread's element. All threads of the block call it.
  __device__ float gradient(const Tile& tile, float* shared) const {
    const Layer& layer = layers[tile.layer];
    float *rows = shared, *columns = rows + images * kSide, *sums = columns + images * kSide;
    const int thread = static_cast<int>(threadIdx.x), lane = thread % kSide;
    const int m = tile.first_row + lane, n = tile.first_column + lane;
    for (int k = thread / kSide; k < images; k += kTileThreads / kSide) {
      float *row = rows + k * kSide + lane, *column = columns + k * kSide + lane;
      if (m < layer.outputs) {
        copy_async(row, layer.grad_out + k * layer.outputs + m);
      } else {
        *row = 0.0f;
      }
      if (n < layer.inputs) {
        copy_async(column, layer.in + k * layer.inputs + n);
      } else {
        *column = 1.0f;  // of the biases
      }
    }
    wait_for_copies();
    __syncthreads();
    const int slice = thread / kGroupThreads, place = thread % kGroupThreads;
    if (slice < slices) {
      const int row = place / kThreadsAcross * kThreadSide, column = place % kThreadsAcross * kThreadSide;
      float products[kThreadSide][kThreadSide] = {};
      const SumRange range = slice_of(images, slices, slice);
      for (int k = range.begin; k < range.end; ++k) {
        const Pair a = *reinterpret_cast<const Pair*>(rows + k * kSide + row),
                   b = *reinterpret_cast<const Pair*>(columns + k * kSide + column);
        for (int r = 0; r < kThreadSide; ++r)
          for (int c = 0; c < kThreadSide; ++c) products[r][c] += a.of[r] * b.of[c];
      }
      float* to = sums + slice * kTileThreads + row * kSide + column;
      for (int r = 0; r < kThreadSide; ++r)
        for (int c = 0; c < kThreadSide; ++c) to[r * kSide + c] = products[r][c];
    }
    __syncthreads();
    float sum = 0.0f;
    for (int p = 0; p < slices; ++p) sum += sums[p * kTileThreads + thread];
    return sum;
  }

 private:
  struct alignas(kThreadSide * sizeof(float)) Pair {
    float of[kThreadSide];
  };
};

}  // namespace sweep::cuda
