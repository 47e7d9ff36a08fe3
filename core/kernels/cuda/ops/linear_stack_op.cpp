#include "core/kernels/cuda/ops/linear_stack_op.h"

#include <algorithm>

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
    layer.activation = activation_of(activation->type).value();
    layer.coefficient = activation_coefficient(activation->type, activation->arguments);
  }
  return shape;
}

std::size_t floats(int count, int images) {
  return static_cast<std::size_t>(count) * static_cast<std::size_t>(images) * sizeof(float);
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

LinearStackOp::LinearStackOp(const Network& network, const std::vector<StackedLayers>& layers,
                             bool reads_pixels, const OpSlots& slots, const OpSchedule& schedule,
                             MemoryPlan& plan)
    : shape_(shape_of(layers)),
      reads_pixels_(reads_pixels),
      plane_(static_cast<int>(element_count(network.input()) / static_cast<std::size_t>(network.input()[0]))),
      slots_(slots) {
  std::vector<LinearShape> shapes;
  for (int l = 0; l < shape_.count; ++l) {
    const StackLayer& layer = shape_.layers[l];
    const Layer& linear = *layers[static_cast<std::size_t>(l)].linear;
    shapes.push_back({layer.inputs, layer.outputs, linear.parameters.size() > 1});
  }
  gradient_parts_ = linear_gradient_parts(shapes, schedule.images);
  for (std::size_t l = 0; l < shapes.size(); ++l) {
    Part part{parameter_offsets(network, *layers[l].linear), shapes[l], {}, {}, {}};
    const int outputs = shapes[l].out_features;
    part.out = l + 1 < shapes.size()
                   ? plan.add(floats(outputs, schedule.images), schedule.forward, schedule.end)
                   : slots.out;
    part.grad = plan.add(floats(outputs, schedule.images), schedule.forward, schedule.end);
    part.partials =
        plan.add(floats(shapes[l].gradient_floats(), gradient_parts_), schedule.forward, schedule.end);
    parts_.push_back(part);
  }
}

void LinearStackOp::run(const Pass& pass, const LossParameters* loss, DeviceTotals* totals) const {
  LinearStackArrays arrays;
  for (std::size_t l = 0; l < parts_.size(); ++l) {
    const auto& [offsets, shape, out, grad, partials] = parts_[l];
    const bool kept = l + 1 < parts_.size() ? pass.training : !pass.training;
    arrays.layers[l] = {.weight = pass.parameters + offsets.weight,
                        .bias = offsets.bias < 0 ? nullptr : pass.parameters + offsets.bias,
                        .out = kept ? pass.data(out) : nullptr,
                        .grad = pass.data(grad)};
  }
  if (reads_pixels_) {
    arrays.pixels = pass.training ? pass.data(slots_.in) : nullptr;
  } else {
    arrays.in = pass.data(slots_.in);
  }
  arrays.grad_in = pass.data(slots_.grad_in);
  arrays.add = slots_.add;
  linear_stack(pass.stream, shape_, arrays,
               {.images = pass.images,
                .input = pass.input,
                .rows = pass.rows,
                .normalisation = pass.normalisation,
                .plane = plane_,
                .loss = loss,
                .backward = pass.training,
                .totals = totals});
}

void LinearStackOp::backward_weights(const Pass& pass) const {
  std::vector<LinearGradient> layers;
  const float* in = pass.data(slots_.in);
  for (const Part& part : parts_) {
    layers.push_back({part.shape, in, pass.data(part.grad), pass.data(part.partials)});
    in = pass.data(part.out);
  }
  linear_backward_weights(pass.stream, layers, pass.images, gradient_parts_);
}

std::vector<PartialGradient> LinearStackOp::gradients() const {
  std::vector<PartialGradient> gradients;
  for (const Part& part : parts_)
    gradients.push_back({part.partials, part.offsets.weight, part.shape.gradient_floats(), gradient_parts_});
  return gradients;
}

}  // namespace sweep::cuda
