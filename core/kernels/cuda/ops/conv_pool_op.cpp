#include "core/kernels/cuda/ops/conv_pool_op.h"

namespace sweep::cuda {
namespace {

bool is(const layers::HeightWidth& pair, std::int64_t value) {
  return pair == layers::HeightWidth{value, value};
}

ConvPoolChain chain_of(const std::vector<ConvPoolLayers>& layers) {
  ConvPoolChain chain;
  for (const ConvPoolLayers& layer : layers) chain.shapes[chain.count++] = layer.shape;
  return chain;
}

}  // namespace

std::optional<ConvPoolShape> ConvPoolOp::shape_of(const Layer& conv, const Layer& pool, bool input_gradient) {
  const auto* convolution = conv.as<layers::Conv2d>();
  const auto* window = pool.as<layers::MaxPool2d>();
  if (convolution == nullptr || window == nullptr) return std::nullopt;
  if (!is(window->kernel_size, 2) || !is(window->stride, 2) || !is(window->padding, 0)) return std::nullopt;
  if (!is(convolution->stride, 1) || !is(convolution->dilation, 1) || convolution->groups != 1)
    return std::nullopt;
  const auto size = [](std::int64_t extent) { return static_cast<int>(extent); };
  // Larger layers cannot fit into shared memory, and would overflow the ints of the layout.
  constexpr std::int64_t kLargest = 1 << 14;
  if (static_cast<std::int64_t>(element_count(conv.input)) > kLargest || conv.output[0] > kLargest)
    return std::nullopt;
  const ConvPoolShape shape{.in_channels = size(conv.input[0]),
                            .in_height = size(conv.input[1]),
                            .in_width = size(conv.input[2]),
                            .out_channels = size(conv.output[0]),
                            .pool_height = size(pool.output[1]),
                            .pool_width = size(pool.output[2]),
                            .kernel_height = size(convolution->kernel_size[0]),
                            .kernel_width = size(convolution->kernel_size[1]),
                            .pad_y = size(convolution->padding[0]),
                            .pad_x = size(convolution->padding[1]),
                            .bias = conv.parameters.size() > 1};
  return conv_pool_fits({1, {shape}}, input_gradient) ? std::optional(shape) : std::nullopt;
}

bool ConvPoolOp::fits(const std::vector<ConvPoolLayers>& layers, bool input_gradient) {
  return layers.size() <= static_cast<std::size_t>(kMaxConvPools) &&
         conv_pool_fits(chain_of(layers), input_gradient);
}

ConvPoolOp::ConvPoolOp(const Network& network, const std::vector<ConvPoolLayers>& layers, bool reads_pixels,
                       const OpSlots& slots, const OpSchedule& schedule, MemoryPlan& plan)
    : chain_(chain_of(layers)),
      reads_pixels_(reads_pixels),
      slices_(conv_pool_gradient_slices(schedule.images)),
      slots_(slots) {
  const auto images = static_cast<std::size_t>(schedule.images);
  for (const auto& [conv, shape] : layers) {
    const auto outputs = static_cast<std::size_t>(shape.outputs()),
               floats = static_cast<std::size_t>(slices_) * static_cast<std::size_t>(shape.gradient_floats());
    FusedLayer fused{shape, parameter_offsets(network, *conv), slots.out, {}, {}};
    if (fused_.size() + 1 < layers.size())
      fused.out = plan.add_rows(images, outputs * sizeof(float), schedule.forward, schedule.backward);
    fused.argmax = plan.add_rows(images, static_cast<std::size_t>(shape.argmax_bytes()), schedule.forward,
                                 schedule.backward);
    fused.partials = plan.add(floats * sizeof(float), schedule.backward, schedule.end);
    fused_.push_back(fused);
  }
}

ConvPoolInput ConvPoolOp::input(const Pass& pass) const {
  if (reads_pixels_) return {nullptr, pass.input, pass.rows, pass.normalisation};
  return {.floats = pass.data(slots_.in)};
}

std::vector<ConvPoolArrays> ConvPoolOp::arrays(const Pass& pass) const {
  std::vector<ConvPoolArrays> arrays;
  for (const auto& [shape, offsets, out, argmax, partials] : fused_) {
    const bool kept = pass.training || arrays.size() + 1 == fused_.size();
    arrays.push_back({.weight = parameter_at(pass, offsets.weight),
                      .bias = parameter_at(pass, offsets.bias),
                      .out = kept ? pass.data(out) : nullptr,
                      .argmax = pass.training ? pass.data<std::uint8_t>(argmax) : nullptr,
                      .gradient = pass.data(partials)});
  }
  return arrays;
}

void ConvPoolOp::forward(const Pass& pass) const {
  if (pass.images <= most_left_) return;
  conv_pool_forward(pass.stream, chain_, pass.images, input(pass), arrays(pass).data());
}

void ConvPoolOp::backward(const Pass& pass) const { run_backward(pass, pass.data(slots_.grad_in)); }

// One kernel has both gradients. That of the weights is overwritten by backward_weights().
void ConvPoolOp::backward_input(const Pass& pass) const {
  if (slots_.grad_in) backward(pass);
}

void ConvPoolOp::backward_weights(const Pass& pass) const { run_backward(pass, nullptr); }

void ConvPoolOp::run_backward(const Pass& pass, float* grad_in) const {
  conv_pool_backward(pass.stream, chain_, pass.images, slices_, input(pass), arrays(pass).data(),
                     pass.data(slots_.grad_out), slots_.add, grad_in);
}

std::vector<PartialGradient> ConvPoolOp::gradients() const {
  std::vector<PartialGradient> gradients;
  for (const FusedLayer& fused : fused_)
    gradients.push_back({fused.partials, fused.offsets.weight, fused.shape.gradient_floats(), slices_});
  return gradients;
}

}  // namespace sweep::cuda
