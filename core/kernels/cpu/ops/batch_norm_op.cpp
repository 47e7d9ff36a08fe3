#include "core/kernels/cpu/ops/batch_norm_op.h"

#include <algorithm>
#include <cmath>

#include "core/kernels/cpu/simd/block.h"

namespace sweep::cpu {
namespace {

// Moments of the union of both sets. The parallel update of Chan, Golub and LeVeque, "Updating Formulae and a
// Pairwise Algorithm for Computing Sample Variances", 1979.
Moments combine(const Moments& a, const Moments& b) {
  if (a.count == 0) return b;
  const double count = a.count + b.count, delta = b.mean - a.mean;
  return {count, a.mean + delta * b.count / count,
          a.squares + b.squares + delta * delta * a.count * b.count / count};
}

void zero_borders(const ImageLayout& layout, float* channel) {
  for (std::size_t y = 0; layout.border > 0 && y < layout.rows; ++y) {
    float* row = channel + y * layout.pitch * kLanes;
    std::fill_n(row - layout.border * kLanes, layout.border * kLanes, 0.0f);
    std::fill_n(row + layout.width * kLanes, layout.border * kLanes, 0.0f);
  }
}

}  // namespace

BatchNormOp::BatchNormOp(const Network& network, const Layer& layer, bool relu, std::size_t max_blocks)
    : Op(layer),
      channels_(static_cast<std::size_t>(layer.input[0])),
      pixels_(element_count(layer.input) / channels_),
      out_layout_(dense_layout(channels_, pixels_)),
      gradient_layout_(out_layout_),
      affine_(!layer.parameters.empty()),
      relu_(relu),
      eps_(std::get<layers::BatchNorm2d>(layer.kind).eps),
      momentum_(std::get<layers::BatchNorm2d>(layer.kind).momentum),
      mean_buffer_(network.buffers()[layer.buffers[0]]),
      variance_buffer_(network.buffers()[layer.buffers[1]]),
      running_mean_(channels_, 0.0f),
      running_variance_(channels_, 1.0f),
      block_moments_(max_blocks * channels_),
      block_sums_(max_blocks * channels_),
      batch_(channels_) {
  AllocationCount::add(channels_ * (2 * sizeof(float) + sizeof(Statistics)) +
                       max_blocks * channels_ * (sizeof(Moments) + sizeof(GradientSums)));
  if (!affine_) return;
  sizes_.parameter_floats = 2 * round_up_to_cache_line(channels_);
  weight_ = network.parameters()[layer.parameters[0]];
  bias_ = network.parameters()[layer.parameters[1]];
}

std::vector<ParameterRun> BatchNormOp::parameter_runs() const {
  return {{weight_.offset, 0, weight_.count}, {bias_.offset, round_up_to_cache_line(channels_), bias_.count}};
}

void BatchNormOp::import_buffers(std::span<const float> network_buffers) {
  std::copy_n(network_buffers.data() + mean_buffer_.offset, channels_, running_mean_.data());
  std::copy_n(network_buffers.data() + variance_buffer_.offset, channels_, running_variance_.data());
}

void BatchNormOp::export_buffers(std::span<float> network_buffers) const {
  std::copy_n(running_mean_.data(), channels_, network_buffers.data() + mean_buffer_.offset);
  std::copy_n(running_variance_.data(), channels_, network_buffers.data() + variance_buffer_.offset);
}

void BatchNormOp::collect_moments(std::size_t block, std::size_t images, const float* in) {
  for (std::size_t c = 0; c < channels_; ++c) {
    block_moments_[block * channels_ + c] = channel_moments(in + c * pixels_ * kLanes, pixels_, images);
  }
}

void BatchNormOp::finish_moments(std::size_t blocks, bool keep_running) {
  for (std::size_t c = 0; c < channels_; ++c) {
    Moments all;
    for (std::size_t block = 0; block < blocks; ++block)
      all = combine(all, block_moments_[block * channels_ + c]);
    batch_[c] = {all.count, all.mean, 1 / std::sqrt(all.squares / all.count + eps_), {}};
    if (keep_running) continue;
    // Like PyTorch, normalizes with the biased variance Σd²/n, but updates the running variance with the
    // unbiased one, Σd²/(n − 1). With a single value, on which PyTorch refuses to train, that is undefined,
    // and the running variance stays.
    const auto move = [this](float& running, double value) {
      running = static_cast<float>((1 - momentum_) * static_cast<double>(running) + momentum_ * value);
    };
    move(running_mean_[c], all.mean);
    if (all.count > 1) move(running_variance_[c], all.squares / (all.count - 1));
  }
}

void BatchNormOp::forward(const Pass& pass, const float* parameters, const Buffers& buffers) const {
  for (std::size_t c = 0; c < channels_; ++c) {
    const double mean = pass.training ? batch_[c].mean : static_cast<double>(running_mean_[c]);
    const double inverse = pass.training ? batch_[c].inverse_deviation
                                         : 1 / std::sqrt(static_cast<double>(running_variance_[c]) + eps_);
    const double scale = static_cast<double>(weight(parameters, c)) * inverse;
    const double shift = static_cast<double>(bias(parameters, c)) - mean * scale;
    scale_and_shift(buffers.in + c * pixels_ * kLanes, out_layout_, static_cast<float>(scale),
                    static_cast<float>(shift), relu_, buffers.out + out_layout_.channel_begin(c));
  }
}

void BatchNormOp::collect_sums(std::size_t block, const Buffers& buffers) {
  for (std::size_t c = 0; c < channels_; ++c) {
    const std::size_t at = c * pixels_ * kLanes;
    block_sums_[block * channels_ + c] =
        gradient_sums(buffers.in + at, relu_ ? buffers.out + out_layout_.channel_begin(c) : nullptr,
                      out_layout_, static_cast<float>(batch_[c].mean), buffers.grad_out + at);
  }
}

void BatchNormOp::finish_sums(std::size_t blocks, float* grad_parameters) {
  for (std::size_t c = 0; c < channels_; ++c) {
    GradientSums all;
    for (std::size_t block = 0; block < blocks; ++block) {
      all.gradient += block_sums_[block * channels_ + c].gradient;
      all.product += block_sums_[block * channels_ + c].product;
    }
    batch_[c].sums = all;
    if (!affine_ || grad_parameters == nullptr) continue;
    grad_parameters[c] += static_cast<float>(all.product * batch_[c].inverse_deviation);
    grad_parameters[round_up_to_cache_line(channels_) + c] += static_cast<float>(all.gradient);
  }
}

void BatchNormOp::backward(const float* parameters, const Buffers& buffers) const {
  if (buffers.grad_in == nullptr) return;
  for (std::size_t c = 0; c < channels_; ++c) {
    // With i = 1/√(variance + eps) and x̂ = (x − mean) · i: ∂x = w · i · (∂y − mean(∂y) − x̂ · mean(∂y ·
    // x̂)). Both means are over the batch; s.sums.product is Σ ∂y · (x − mean), so it takes another factor i.
    const Statistics& s = batch_[c];
    const double factor = static_cast<double>(weight(parameters, c)) * s.inverse_deviation;
    const double deviation = factor * s.inverse_deviation * s.inverse_deviation * s.sums.product / s.count;
    const std::size_t at = c * pixels_ * kLanes;
    float* grad_in = buffers.grad_in + gradient_layout_.channel_begin(c);
    normalization_gradient(
        buffers.in + at, buffers.grad_out + at, gradient_layout_, buffers.images,
        {static_cast<float>(factor), static_cast<float>(deviation), static_cast<float>(s.mean),
         static_cast<float>(factor * s.sums.gradient / s.count)},
        grad_in);
    zero_borders(gradient_layout_, grad_in);
  }
}

}  // namespace sweep::cpu
