#include "core/kernels/cuda/conv_pool_op.h"

#include <array>

namespace sweep::cuda {
namespace {

using Pair = std::array<std::int64_t, 2>;

bool is(const Layer& layer, const char* name, std::int64_t value) {
  return std::get<Pair>(layer.arguments.at(name)) == Pair{value, value};
}

}  // namespace

std::optional<ConvPoolShape> ConvPoolOp::shape_of(const Layer& conv, const Layer& pool) {
  if (conv.type != "conv2d" || pool.type != "max_pool2d") return std::nullopt;
  if (!is(pool, "kernel_size", 2) || !is(pool, "stride", 2) || !is(pool, "padding", 0)) return std::nullopt;
  if (!is(conv, "stride", 1) || !is(conv, "dilation", 1) ||
      std::get<std::int64_t>(conv.arguments.at("groups")) != 1)
    return std::nullopt;
  const auto size = [](std::int64_t extent) { return static_cast<int>(extent); };
  const Pair kernel = std::get<Pair>(conv.arguments.at("kernel_size")),
             padding = std::get<Pair>(conv.arguments.at("padding"));
  // Anything larger than this cannot fit, and could overflow what tells so.
  constexpr std::int64_t kLargest = 1 << 14;
  if (static_cast<std::int64_t>(element_count(conv.input)) > kLargest || conv.output[0] > kLargest)
    return std::nullopt;
  const ConvPoolShape shape{.in_channels = size(conv.input[0]),
                            .in_height = size(conv.input[1]),
                            .in_width = size(conv.input[2]),
                            .out_channels = size(conv.output[0]),
                            .pool_height = size(pool.output[1]),
                            .pool_width = size(pool.output[2]),
                            .kernel_height = size(kernel[0]),
                            .kernel_width = size(kernel[1]),
                            .pad_y = size(padding[0]),
                            .pad_x = size(padding[1]),
                            .bias = conv.parameters.size() > 1};
  return conv_pool_fits(shape) ? std::optional(shape) : std::nullopt;
}

ConvPoolOp::ConvPoolOp(const Network& network, const Layer& conv, const ConvPoolShape& shape,
                       bool reads_pixels, const OpSlots& slots, const OpTimes& times, MemoryPlan& plan)
    : shape_(shape),
      places_(parameter_places(network, conv)),
      reads_pixels_(reads_pixels),
      parts_(conv_pool_gradient_parts(times.images)),
      slots_(slots),
      partials_(plan.add(static_cast<std::size_t>(parts_) *
                             static_cast<std::size_t>(shape.gradient_floats()) * sizeof(float),
                         times.backward, times.end)),
      winner_(plan.add(static_cast<std::size_t>(times.images) * static_cast<std::size_t>(shape.outputs()),
                       times.forward, times.backward)) {}

ConvPoolInput ConvPoolOp::input(const Pass& pass) const {
  if (reads_pixels_) return {nullptr, pass.input, pass.rows, pass.normalisation};
  return {.floats = pass.at(slots_.in)};
}

void ConvPoolOp::forward(const Pass& pass) const {
  conv_pool_forward(pass.stream, shape_, pass.images, input(pass), pass.parameters + places_.weight,
                    places_.bias < 0 ? nullptr : pass.parameters + places_.bias, pass.at(slots_.out),
                    pass.at<std::uint8_t>(winner_));
}

void ConvPoolOp::backward(const Pass& pass) const {
  conv_pool_backward(pass.stream, shape_, pass.images, parts_, input(pass), pass.parameters + places_.weight,
                     pass.at(slots_.grad_out), pass.at<std::uint8_t>(winner_), pass.at(partials_), slots_.add,
                     pass.at(slots_.grad_in));
}

std::vector<PartialGradient> ConvPoolOp::gradients() const {
  return {{partials_, places_.weight, shape_.gradient_floats(), parts_}};
}

}  // namespace sweep::cuda
