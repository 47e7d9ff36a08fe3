#include "core/kernels/cuda/ops/linear_stack_op.h"

#include <algorithm>

#include "core/kernels/cuda/kernels/conv_pool_stack.h"

namespace sweep::cuda {
namespace {

LinearStackShape shape_of(const std::vector<StackedLayers>& layers) {
  LinearStackShape shape;
  for (const auto& [linear, activation] : layers) {
    StackLayer& layer = shape.layers[shape.count++];
    layer.inputs = static_cast<int>(linear->input[0]);
    layer.outputs = static_cast<int>(linear->output[0]);
    if (activation == nullptr) continue;
    layer.active = true;
    const auto& activated = std::get<layers::Activated>(activation->kind);
    layer.activation = activated.function;
    layer.coefficient = activated.coefficient;
  }
  return shape;
}

std::vector<LinearShape> linear_shapes(const std::vector<StackedLayers>& layers) {
  std::vector<LinearShape> shapes;
  for (const auto& [linear, activation] : layers)
    shapes.push_back({static_cast<int>(linear->input[0]), static_cast<int>(linear->output[0]),
                      linear->parameters.size() > 1});
  return shapes;
}

}  // namespace

bool LinearStackOp::fits(const std::vector<StackedLayers>& layers) {
  static_assert(kMaxGradients >= kMaxStackLayers);
  // Wider layers fill a GPU on their own, and may be a library's.
  constexpr std::size_t kMaxWeights = std::size_t{1} << 17;
  const bool wide = std::any_of(layers.begin(), layers.end(), [](const StackedLayers& layer) {
    return element_count(layer.linear->input) * element_count(layer.linear->output) > kMaxWeights;
  });
  return !wide && layers.size() <= static_cast<std::size_t>(kMaxStackLayers) &&
         linear_stack_fits(shape_of(layers), shared_bytes_limit());
}

int LinearStackOp::gradient_slices(const std::vector<StackedLayers>& layers, int images) {
  return linear_gradient_slices(linear_shapes(layers), images);
}

LinearStackOp::LinearStackOp(const Network& network, const std::vector<StackedLayers>& layers,
                             int gradient_slices, bool reads_pixels, const OpSlots& slots,
                             const OpSchedule& schedule, MemoryPlan& plan)
    : shape_(shape_of(layers)),
      reads_pixels_(reads_pixels),
      plane_(static_cast<int>(element_count(network.input()) / static_cast<std::size_t>(network.input()[0]))),
      slices_(gradient_slices),
      slots_(slots) {
  const std::vector<LinearShape> shapes = linear_shapes(layers);
  const auto images = static_cast<std::size_t>(schedule.images);
  for (std::size_t l = 0; l < shapes.size(); ++l) {
    FusedLayer fused{parameter_offsets(network, *layers[l].linear), shapes[l], {}, {}, {}};
    const std::size_t row = static_cast<std::size_t>(shapes[l].out_features) * sizeof(float);
    const std::size_t gradient = static_cast<std::size_t>(shapes[l].gradient_floats()) * sizeof(float);
    fused.out =
        l + 1 < shapes.size() ? plan.add_rows(images, row, schedule.forward, schedule.end) : slots.out;
    fused.grad = plan.add_rows(images, row, schedule.forward, schedule.end);
    fused.partials = plan.add(static_cast<std::size_t>(slices_) * gradient, schedule.forward, schedule.end);
    fused_.push_back(fused);
  }
}

LinearStackArrays LinearStackOp::arrays(const Pass& pass) const {
  LinearStackArrays arrays;
  for (std::size_t l = 0; l < fused_.size(); ++l) {
    const auto& [offsets, shape, out, grad, partials] = fused_[l];
    const bool is_last = l + 1 == fused_.size();
    const bool kept = is_last ? slots_.grad_out || !pass.training : pass.training;
    arrays.layers[l] = {.weight = parameter_at(pass, offsets.weight),
                        .bias = parameter_at(pass, offsets.bias),
                        .out = kept ? pass.data(out) : nullptr,
                        .grad = pass.data(grad)};
  }
  if (reads_pixels_) {
    arrays.pixels = pass.training ? pass.data(slots_.in) : nullptr;
  } else {
    arrays.in = pass.data(slots_.in);
  }
  arrays.grad_out = pass.data(slots_.grad_out);
  arrays.grad_in = pass.data(slots_.grad_in);
  arrays.add = slots_.add;
  return arrays;
}

LinearStackPass LinearStackOp::stack_pass(const Pass& pass, const LossParameters* loss, bool backward,
                                          Totals* totals) const {
  return {.images = pass.images,
          .input = pass.input,
          .rows = pass.rows,
          .normalisation = pass.normalisation,
          .plane = plane_,
          .loss = loss,
          .backward = backward,
          .totals = totals};
}

void LinearStackOp::launch(const Pass& pass, const LossParameters* loss, bool backward,
                           Totals* totals) const {
  linear_stack(pass.stream, shape_, arrays(pass), stack_pass(pass, loss, backward, totals));
}

void LinearStackOp::join(ConvPoolOp& convolutions) {
  if (!conv_pool_stack_fits(convolutions.chain(), shape_, shared_bytes_limit())) return;
  convolutions_ = &convolutions;
  convolutions.leave_forward(kMaxJoinedImages);
}

void LinearStackOp::run(const Pass& pass, const LossParameters* loss, Totals* totals) const {
  if (convolutions_ == nullptr || pass.images > kMaxJoinedImages) {
    launch(pass, loss, pass.training, totals);
    return;
  }
  conv_pool_stack(pass.stream, convolutions_->chain(), convolutions_->input(pass),
                  convolutions_->arrays(pass).data(), shape_, arrays(pass),
                  stack_pass(pass, loss, pass.training, totals));
}

void LinearStackOp::forward(const Pass& pass) const { launch(pass, nullptr, false, nullptr); }

void LinearStackOp::backward_input(const Pass& pass) const { launch(pass, nullptr, true, nullptr); }

void LinearStackOp::backward(const Pass& pass) const {
  backward_input(pass);
  backward_weights(pass);
}

void LinearStackOp::backward_weights(const Pass& pass) const {
  linear_backward_weights(pass.stream, weight_gradients(pass), pass.images, slices_);
}

std::vector<LinearGradient> LinearStackOp::weight_gradients(const Pass& pass) const {
  std::vector<LinearGradient> layers;
  const float* in = pass.data(slots_.in);
  for (const FusedLayer& fused : fused_) {
    layers.push_back({fused.shape, in, pass.data(fused.grad), pass.data(fused.partials)});
    in = pass.data(fused.out);
  }
  return layers;
}

std::vector<PartialGradient> LinearStackOp::gradients() const {
  std::vector<PartialGradient> gradients;
  for (const FusedLayer& fused : fused_)
    gradients.push_back({fused.partials, fused.offsets.weight, fused.shape.gradient_floats(), slices_});
  return gradients;
}

}  // namespace sweep::cuda
