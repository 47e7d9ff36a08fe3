// Gradients of a convolution fused with 2×2 max pooling, on one block of 16 images.
//
// Max pooling leaves a gradient at one of four positions, and ReLU removes more of them. Which ones differs
// between images, so vectors over images would be mostly zeros. This kernel exploits the sparsity:
//
//   1. The input block is transposed to one array per image, [y][x][channel]. The patch of the input that an
//      output position sees is then kernel_height contiguous runs of kernel_width · channels floats.
//   2. For each output channel, the nonzero gradients are compressed into a list: the value, and the offset
//      of the position's patch. A list covers some images and some rows of windows, so few that their
//      patches stay in the L1 cache.
//   3. Gradient of the weights: the sums of one output channel, [ky][kx][in], are held in registers, and
//      each list entry adds value · patch to them.
//   4. Gradient of the input: the weights of one output channel are held in registers, and each list entry
//      adds value · weights to its patch of the gradient's arrays, which are transposed back at the end.
//
// An entry costs one multiply-add per vector of its patch: a quarter of the dense work or less.
// Additions happen in the order of the lists (images, then positions), which depends on the vector width
// and sizes, but not on threads.
#include <algorithm>
#include <array>
#include <cstdint>

#include "core/kernels/cpu/kernels/conv_kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/kernels/cpu/kernels/conv_pool_backward.cpp"
#include "hwy/foreach_target.h"  // must come before highway.h
#include "hwy/highway.h"

#include "core/kernels/cpu/simd/simd-inl.h"
#include "core/kernels/cpu/simd/transpose-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sweep::cpu::HWY_NAMESPACE {

// The part of the input that one output position sees, as runs of floats in an image's array: `runs` runs of
// run_floats floats, run_stride floats apart.
struct Patch {
  std::size_t runs, run_floats, run_stride;
};

// The list of an output channel's nonzero gradients: their values, and where their patches start in the
// images' arrays, in floats.
struct NonZeros {
  const float* values;
  const std::int32_t* offsets;
  std::size_t count;
};

// The part of a block that one list covers, so that its patches stay in the L1 cache.
struct CacheBlock {
  std::size_t lanes, rows;  // images; rows of pooling windows
};

inline constexpr std::size_t kL1Floats = 32 * 1024 / sizeof(float);
inline constexpr std::size_t kSlack = kLanes;  // whole vectors are read and written beyond the ends of arrays

// Floats of one NonZeros per output channel.
inline std::size_t nonzeros_floats(const ConvGeometry& g) {
  return round_up_to_cache_line(g.out_channels * sizeof(NonZeros) / sizeof(float) + 1);
}

inline constexpr int kMaxVectors = kManyRegisters ? 16 : 8;  // vectors of sums or weights in registers
inline constexpr int kMaxRuns = 5;

HWY_INLINE std::size_t vectors_in(std::size_t floats) {
  return (floats + hn::Lanes(Lanes()) - 1) / hn::Lanes(Lanes());
}

// Loads vectors of kRuns runs of `from`, [runs][run_floats]. The last vector of a run is masked.
template <int kRuns, int kVectors, class Mask>
HWY_INLINE void load_runs(Lanes d, Mask tail, const float* from, std::size_t run_floats,
                          Vector (&to)[kRuns][kVectors]) {
  for (std::size_t r = 0; r < kRuns; ++r, from += run_floats) {
    for (std::size_t v = 0; v + 1 < kVectors; ++v) to[r][v] = hn::LoadU(d, from + v * hn::Lanes(d));
    to[r][kVectors - 1] = hn::MaskedLoad(tail, d, from + (kVectors - 1) * hn::Lanes(d));
  }
}

// Gradient of the weights: sums[run][·] += Σ value · patch over the list. `sums` is [runs][run_floats], so
// the last vector of a run is masked.
struct AccumulateWeights {
  template <int kRuns, int kVectors>
  static void run(NonZeros nonzeros, float* images, std::size_t run_stride, float* sums,
                  std::size_t run_floats, std::size_t chunk_floats) {
    const Lanes d;
    const std::size_t n = hn::Lanes(d);
    const auto tail = hn::FirstN(d, chunk_floats - (kVectors - 1) * n);
    Vector acc[kRuns][kVectors];
    load_runs<kRuns, kVectors>(d, tail, sums, run_floats, acc);
    const auto add = [&](Vector(&to)[kRuns][kVectors], std::size_t i) HWY_ATTR {
      const Vector value = hn::Set(d, nonzeros.values[i]);
      const float* patch = images + nonzeros.offsets[i];
      for (std::size_t r = 0; r < kRuns; ++r) {
        for (std::size_t v = 0; v < kVectors; ++v) {
          to[r][v] = hn::MulAdd(value, hn::LoadU(d, patch + r * run_stride + v * n), to[r][v]);
        }
      }
    };
    std::size_t i = 0;
    if constexpr (kRuns * kVectors <= 4) {
      // The few sums are a chain of dependent multiply-adds: four copies of each hide the latency.
      Vector more[3][kRuns][kVectors];
      for (auto& set : more) {
        for (auto& run_sums : set) {
          for (auto& sum : run_sums) sum = hn::Zero(d);
        }
      }
      for (; i + 4 <= nonzeros.count; i += 4) {
        add(acc, i);
        add(more[0], i + 1);
        add(more[1], i + 2);
        add(more[2], i + 3);
      }
      for (std::size_t r = 0; r < kRuns; ++r) {
        for (std::size_t v = 0; v < kVectors; ++v) {
          acc[r][v] = hn::Add(hn::Add(acc[r][v], more[0][r][v]), hn::Add(more[1][r][v], more[2][r][v]));
        }
      }
    }
    for (; i < nonzeros.count; ++i) add(acc, i);
    for (std::size_t r = 0; r < kRuns; ++r) {
      for (std::size_t v = 0; v + 1 < kVectors; ++v) hn::StoreU(acc[r][v], d, sums + r * run_floats + v * n);
      hn::BlendedStore(acc[r][kVectors - 1], tail, d, sums + r * run_floats + (kVectors - 1) * n);
    }
  }
};

// Gradient of the input: patch += value · weights for every entry of the list. The masked tails of the
// weights are zero, so whole vectors may be stored.
struct ScatterInput {
  template <int kRuns, int kVectors>
  static void run(NonZeros nonzeros, float* images, std::size_t run_stride, float* weights,
                  std::size_t run_floats, std::size_t chunk_floats) {
    const Lanes d;
    const std::size_t n = hn::Lanes(d);
    const auto tail = hn::FirstN(d, chunk_floats - (kVectors - 1) * n);
    Vector weight[kRuns][kVectors];
    load_runs<kRuns, kVectors>(d, tail, weights, run_floats, weight);
    for (std::size_t i = 0; i < nonzeros.count; ++i) {
      const Vector value = hn::Set(d, nonzeros.values[i]);
      float* patch = images + nonzeros.offsets[i];
      for (std::size_t r = 0; r < kRuns; ++r) {
        for (std::size_t v = 0; v < kVectors; ++v) {
          float* target = patch + r * run_stride + v * n;
          hn::StoreU(hn::MulAdd(value, weight[r][v], hn::LoadU(d, target)), d, target);
        }
      }
    }
  }
};

// Runs of a patch that fit the registers together; at least one.
HWY_INLINE std::size_t runs_per_pass(const Patch& patch) {
  return std::clamp<std::size_t>(kMaxVectors / vectors_in(patch.run_floats), 1,
                                 std::min<std::size_t>(kMaxRuns, patch.runs));
}

// Runs the update for all output channels, for as many runs of the patch at a time as fit the registers, and
// for a chunk of a run at a time if it is longer than that. rows: sums or weights,
// [out_channels][runs][run_floats].
template <class Update>
HWY_INLINE void for_each_channel(const ConvGeometry& g, const Patch& patch, const NonZeros* nonzeros,
                                 float* images, float* rows) {
  const std::size_t n = hn::Lanes(Lanes());
  const std::size_t row_floats = patch.runs * patch.run_floats, pass = runs_per_pass(patch);
  for (std::size_t run = 0; run < patch.runs; run += pass) {
    const std::size_t runs = HWY_MIN(pass, patch.runs - run);
    for (std::size_t first = 0; first < patch.run_floats; first += kMaxVectors * n) {
      const std::size_t chunk = HWY_MIN(kMaxVectors * n, patch.run_floats - first);
      const std::size_t offset = run * patch.run_stride + first;
      for (std::size_t c = 0; c < g.out_channels; ++c) {
        if (nonzeros[c].count == 0) continue;
        with_count<kMaxRuns>(runs, [&](auto count) HWY_ATTR {
          constexpr int kRuns = decltype(count)::value;
          with_count<kMaxVectors / kRuns>(vectors_in(chunk), [&](auto vectors) HWY_ATTR {
            Update::template run<kRuns, decltype(vectors)::value>(
                nonzeros[c], images + offset, patch.run_stride,
                rows + c * row_floats + run * patch.run_floats + first, patch.run_floats, chunk);
          });
        });
      }
    }
  }
}

// A rectangle of pooling windows, in some images.
struct Windows {
  std::size_t row_begin, row_end, column_begin, column_end, lane_begin, lane_end;
};

// How far a patch's start moves in the images' arrays, in floats, from one image to the next, and so on. A
// position is one of the 4 of a window.
struct Strides {
  std::size_t image, window_row, window_column, position_row, position_column;
};

// Compresses one output channel's nonzero gradients into a list; returns its length.
HWY_INLINE std::size_t compress_nonzeros(const ConvGeometry& g, const float* grad, const float* argmax,
                                         const Windows& windows, const Strides& strides, float* values,
                                         std::int32_t* offsets) {
  const Lanes d;
  const hn::RebindToSigned<Lanes> di;
  const std::size_t pooled_width = g.out_width / 2;
  const auto to_int = [](std::size_t x) { return static_cast<std::int32_t>(x); };
  std::size_t count = 0;
  for (std::size_t lane = windows.lane_begin / hn::Lanes(d) * hn::Lanes(d); lane < windows.lane_end;
       lane += hn::Lanes(d)) {
    const auto lane_index = hn::Iota(di, to_int(lane));
    const auto in_range = hn::And(hn::Gt(lane_index, hn::Set(di, to_int(windows.lane_begin) - 1)),
                                  hn::Lt(lane_index, hn::Set(di, to_int(windows.lane_end))));
    const auto image = hn::Mul(hn::Sub(lane_index, hn::Set(di, to_int(windows.lane_begin))),
                               hn::Set(di, to_int(strides.image)));
    const auto row_step = hn::Set(di, to_int(strides.position_row)),
               column_step = hn::Set(di, to_int(strides.position_column));
    for (std::size_t y = windows.row_begin; y < windows.row_end; ++y) {
      for (std::size_t x = windows.column_begin; x < windows.column_end; ++x) {
        const std::size_t at = (y * pooled_width + x) * kLanes + lane;
        const Vector value = hn::Load(d, grad + at);
        const auto index = hn::BitCast(di, hn::Load(d, argmax + at));
        const auto has_gradient = hn::And(in_range, hn::Lt(index, hn::Set(di, 4)));
        const auto listed = hn::AndNot(hn::RebindMask(di, hn::Eq(value, hn::Zero(d))), has_gradient);
        const std::size_t corner =
            y * strides.window_row + (x - windows.column_begin) * strides.window_column;
        auto start = hn::Add(image, hn::Set(di, to_int(corner)));
        start = hn::Add(start, hn::Mul(hn::ShiftRight<1>(index), row_step));
        start = hn::Add(start, hn::Mul(hn::And(index, hn::Set(di, 1)), column_step));
        // Compresses in a register and stores whole vectors, whose unused lanes the next ones overwrite: a
        // compressing store takes over a hundred cycles on Zen 4, the register form two.
        hn::StoreU(hn::Compress(start, listed), di, offsets + count);
        hn::StoreU(hn::Compress(value, hn::RebindMask(d, listed)), d, values + count);
        count += hn::CountTrue(di, listed);
      }
    }
  }
  return count;
}

// The parts of scratch memory, in this order, after the lists' heads.
struct Scratch {
  float* images;       // [16][image_floats]
  float* grad_images;  // the same for the input's gradient, if it is needed
  float* values;       // the lists of all output channels, one after the other
  std::int32_t* offsets;
};

void collect_nonzeros(const ConvGeometry& g, const ConvPoolGradients& gradients, const Windows& windows,
                      const Strides& strides, const Scratch& scratch, NonZeros* nonzeros) {
  const std::size_t plane = (g.out_height / 2) * (g.out_width / 2) * kLanes;
  std::size_t used = 0;
  for (std::size_t c = 0; c < g.out_channels; ++c) {
    const std::size_t count =
        compress_nonzeros(g, gradients.grad_out + c * plane, gradients.argmax + c * plane, windows, strides,
                          scratch.values + used, scratch.offsets + used);
    nonzeros[c] = {scratch.values + used, scratch.offsets + used, count};
    used += count;
  }
}

CacheBlock choose_cache_block(const ConvPoolPlan& plan, const Patch& patch) {
  const ConvGeometry& g = plan.geometry;
  const std::size_t pass = runs_per_pass(patch), row = g.in_width * g.in_channels;
  const std::size_t image = plan.by_columns ? plan.image_floats : (2 * g.stride_y + pass - 1) * row;
  CacheBlock block{kLanes, plan.by_columns ? g.out_height / 2 : 1};
  while (block.lanes > 4 && image * block.lanes > kL1Floats) block.lanes /= 2;
  const std::size_t rows = kL1Floats / (row * block.lanes);
  if (!plan.by_columns && rows > pass - 1)
    block.rows = std::clamp<std::size_t>((rows - (pass - 1)) / (2 * g.stride_y), 1, g.out_height / 2);
  return block;
}

// The gradients of weights and input, for one column of pooling windows after the other, or for all columns
// at once; see by_columns.
void backward_windows(const ConvPoolPlan& plan, const ConvPoolGradients& gradients, const Scratch& scratch,
                      NonZeros* nonzeros) {
  const ConvGeometry& g = plan.geometry;
  const std::size_t image = plan.image_floats, run = g.kernel_width * g.in_channels;
  const std::size_t row = plan.by_columns ? run : g.in_width * g.in_channels;
  const std::size_t columns = plan.by_columns ? 1 : g.out_width / 2;
  const Patch patch = plan.by_columns ? Patch{1, g.kernel_height * run, 0} : Patch{g.kernel_height, run, row};
  const Strides strides{image, 2 * g.stride_y * row, 2 * g.stride_x * g.in_channels, g.stride_y * row,
                        plan.by_columns ? g.in_height * run : g.stride_x * g.in_channels};
  const CacheBlock block = choose_cache_block(plan, patch);
  if (gradients.grad_in != nullptr) std::fill_n(scratch.grad_images, image * kLanes, 0.0f);
  for (std::size_t x = 0; x < g.out_width / 2; x += columns) {
    lanes_to_images(image, image, gradients.in + 2 * x * g.stride_x * kLanes, plan.in_offsets.data(),
                    scratch.images);
    for (std::size_t lane = 0; lane < kLanes; lane += block.lanes) {
      for (std::size_t y = 0; y < g.out_height / 2; y += block.rows) {
        const std::size_t end = HWY_MIN(g.out_height / 2, y + block.rows);
        collect_nonzeros(g, gradients, {y, end, x, x + columns, lane, lane + block.lanes}, strides, scratch,
                         nonzeros);
        for_each_channel<AccumulateWeights>(g, patch, nonzeros, scratch.images + lane * image,
                                            gradients.grad_weights);
        if (gradients.grad_in == nullptr) continue;
        for_each_channel<ScatterInput>(g, patch, nonzeros, scratch.grad_images + lane * image,
                                       const_cast<float*>(gradients.weights));
      }
    }
  }
  if (gradients.grad_in == nullptr) return;
  for (std::size_t y = 0; y < g.height(); ++y) {
    const float* images[kLanes];
    for (std::size_t i = 0; i < kLanes; ++i) {
      images[i] = scratch.grad_images + i * image + ((y + g.pad_y) * g.in_width + g.pad_x) * g.in_channels;
    }
    images_to_lanes(
        g.width() * g.in_channels, images, [&](std::size_t e) { return plan.grad_in_offsets[e]; },
        gradients.grad_in + y * g.width() * kLanes);
  }
}

void conv_pool_backward(const ConvPoolPlan& plan, const ConvPoolGradients& gradients, float* scratch) {
  const Lanes d;
  const ConvGeometry& g = plan.geometry;
  const std::size_t images = plan.image_floats * kLanes + kSlack;
  const std::size_t windows = (g.out_height / 2) * (g.out_width / 2) * kLanes;
  auto* nonzeros = reinterpret_cast<NonZeros*>(scratch);
  scratch += nonzeros_floats(g);
  Scratch parts{scratch, scratch + images, nullptr, nullptr};
  parts.values = parts.grad_images + (plan.needs_grad_in ? images : 0);
  parts.offsets = reinterpret_cast<std::int32_t*>(parts.values + g.out_channels * windows + kSlack);
  backward_windows(plan, gradients, parts, nonzeros);
  if (gradients.grad_bias == nullptr) return;
  for (std::size_t c = 0; c < g.out_channels; ++c) {
    Vector sum = hn::Zero(d);
    for (std::size_t i = 0; i < windows; i += hn::Lanes(d)) {
      const hn::RebindToSigned<Lanes> di;
      const auto index = hn::BitCast(di, hn::Load(d, gradients.argmax + c * windows + i));
      const auto has_gradient = hn::RebindMask(d, hn::Lt(index, hn::Set(di, 4)));
      sum = hn::Add(sum, hn::IfThenElseZero(has_gradient, hn::Load(d, gradients.grad_out + c * windows + i)));
    }
    gradients.grad_bias[c] += hn::GetLane(hn::SumOfLanes(d, sum));
  }
}

}  // namespace sweep::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sweep::cpu {

SWEEP_EXPORT_KERNEL(conv_pool_backward);

using HWY_NAMESPACE::kSlack;

ConvPoolPlan::ConvPoolPlan(const ConvGeometry& conv, bool grad_in) : geometry(conv), needs_grad_in(grad_in) {
  // Whether a run of [y][x][channel] is shorter than a vector of 16 floats.
  by_columns = !grad_in && conv.kernel_height > 1 && conv.kernel_width * conv.in_channels < kLanes;
  const auto offset = [&](std::size_t channel, std::size_t y, std::size_t x) {
    return static_cast<std::uint32_t>(channel * conv.in_plane + (y * conv.in_width + x) * kLanes);
  };
  for (std::size_t position = 0; position < (by_columns ? 2U : 1U); ++position) {
    for (std::size_t y = 0; y < conv.in_height; ++y) {
      for (std::size_t x = 0; x < (by_columns ? conv.kernel_width : conv.in_width); ++x) {
        for (std::size_t c = 0; c < conv.in_channels; ++c)
          in_offsets.push_back(offset(c, y, position * conv.stride_x + x));
      }
    }
  }
  for (std::size_t x = 0; grad_in && x < conv.width(); ++x) {
    for (std::size_t c = 0; c < conv.in_channels; ++c) {
      grad_in_offsets.push_back(static_cast<std::uint32_t>((c * conv.height() * conv.width() + x) * kLanes));
    }
  }
  image_floats = in_offsets.size();
  const std::size_t images = image_floats * kLanes + kSlack;
  const std::size_t nonzeros =
      conv.out_channels * (conv.out_height / 2) * (conv.out_width / 2) * kLanes + kSlack;
  scratch_floats = HWY_NAMESPACE::nonzeros_floats(conv) + images * (grad_in ? 2 : 1) + 2 * nonzeros;
}

}  // namespace sweep::cpu
#endif  // HWY_ONCE
