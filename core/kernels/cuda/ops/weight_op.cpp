// Convolutions and linear layers: alike except for the shape and its kernels.
#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "core/kernels/cuda/kernels/conv.h"
#include "core/kernels/cuda/kernels/elementwise.h"
#include "core/kernels/cuda/kernels/linear.h"
#include "core/kernels/cuda/ops/layer_ops.h"
#include "core/kernels/cuda/ops/parameter_offsets.h"

namespace sweep::cuda {
namespace {

// What a layer's shape is, and the built-in kernels for it.
template <class Shape>
struct BuiltIn;

template <>
struct BuiltIn<ConvShape> {
  static ConvShape shape_of(const Layer& layer) {
    const auto& conv = std::get<layers::Conv2d>(layer.kind);
    return {.in_channels = size(layer.input[0]),
            .in_height = size(layer.input[1]),
            .in_width = size(layer.input[2]),
            .out_channels = size(layer.output[0]),
            .out_height = size(layer.output[1]),
            .out_width = size(layer.output[2]),
            .kernel_height = size(conv.kernel_size[0]),
            .kernel_width = size(conv.kernel_size[1]),
            .stride_y = size(conv.stride[0]),
            .stride_x = size(conv.stride[1]),
            .pad_y = size(conv.padding[0]),
            .pad_x = size(conv.padding[1]),
            .dilation_y = size(conv.dilation[0]),
            .dilation_x = size(conv.dilation[1]),
            .groups = size(conv.groups),
            .bias = layer.parameters.size() > 1};
  }
  static constexpr auto forward = &conv_forward;
  static constexpr auto gradient_slices = &conv_gradient_slices;
  static constexpr auto backward_weights = &conv_backward_weights;
  static constexpr auto backward_input = &conv_backward_input;
};

template <>
struct BuiltIn<LinearShape> {
  static LinearShape shape_of(const Layer& layer) {
    return {size(layer.input[0]), size(layer.output[0]), layer.parameters.size() > 1};
  }
  static constexpr auto forward = &linear_forward;
  static int gradient_slices(const LinearShape& shape, int images) {
    return linear_gradient_slices({&shape, 1}, images);
  }
  static void backward_weights(Stream& stream, const LinearShape& shape, int images, int slices,
                               const float* in, const float* grad_out, float* gradient) {
    const LinearGradient layer{shape, in, grad_out, gradient};
    linear_backward_weights(stream, {&layer, 1}, images, slices);
  }
  static constexpr auto backward_input = &linear_backward_input;
};

// What a library could do of a convolution or linear layer.
std::vector<LibraryTask> tasks_of(const ParameterOffsets& offsets, const LayerPlace& place) {
  const OpSlots& slots = place.slots;
  const auto task = [&](Direction direction) {
    return LibraryTask{.direction = direction,
                       .images = place.schedule.images,
                       .relu = place.relu && direction == Direction::kForward,
                       .add = slots.add && direction == Direction::kBackwardInput,
                       .weight_offset = offsets.weight,
                       .bias_offset = std::max(offsets.bias, 0)};
  };
  std::vector<LibraryTask> tasks = {task(Direction::kForward)};
  if (slots.grad_out) tasks.push_back(task(Direction::kBackwardWeights));
  if (slots.grad_in) tasks.push_back(task(Direction::kBackwardInput));
  return tasks;
}

// The plans that a library has for one layer: one per direction and batch size. Shape: LinearShape or
// ConvShape.
template <class Shape>
class LibraryPlans {
 public:
  // `choice`: for batches of schedule.images. Asks `plan` for the workspaces: one that lives only while
  // forward runs and one only while backward runs, each as large as the hungriest task of its phase, so that
  // the workspaces of all layers overlap.
  LibraryPlans(LibraryChoice<Shape> choice, const Shape& shape, const OpSchedule& schedule, MemoryPlan& plan)
      : library_(std::move(choice.library)), shape_(shape), tasks_(std::move(choice.tasks)) {
    make_plans(schedule.images);
    for (const auto& [key, task_plan] : plans_) {
      std::size_t& bytes = is_forward(key.first) ? forward_bytes_ : backward_bytes_;
      bytes = std::max(bytes, task_plan->workspace_bytes());
    }
    if (forward_bytes_ > 0) forward_ = plan.add(forward_bytes_, schedule.forward, schedule.forward);
    if (backward_bytes_ > 0) backward_ = plan.add(backward_bytes_, schedule.backward, schedule.backward);
  }

  // Whether the library is to do `direction`.
  bool has(Direction direction) const {
    return std::any_of(tasks_.begin(), tasks_.end(),
                       [&](const LibraryTask& task) { return task.direction == direction; });
  }

  // Makes the plans for batches of `images` and returns true, if they have not been prepared. Has to come
  // before run(), outside of a capture. The caller then runs each plan once: a library may load kernels or
  // allocate in a first run, which a capture forbids.
  bool prepare(int images) {
    if (tasks_.empty() || !prepared_.insert(images).second) return false;
    make_plans(images);
    return true;
  }

  // Puts the library's work on the stream and returns true; or does nothing and returns false, and the
  // caller uses the built-in kernel: the library does not do the direction, or has no algorithm for so few
  // images that fits the workspace. The answer is the same for every pass with as many images.
  bool run(const Pass& pass, Direction direction, LibraryArrays arrays) const {
    const auto found = plans_.find({direction, pass.images});
    if (found == plans_.end()) return false;
    arrays.workspace = pass.data<std::byte>(is_forward(direction) ? forward_ : backward_);
    found->second->run(pass.stream, arrays);
    return true;
  }

 private:
  using Key = std::pair<Direction, int>;  // and images

  static bool is_forward(Direction direction) { return direction == Direction::kForward; }

  // The memory plan is solved by the time smaller batches come, so their plans have to make do with the
  // workspace of the full batch.
  void make_plans(int images) {
    for (LibraryTask task : tasks_) {
      const Key key{task.direction, images};
      if (plans_.contains(key)) continue;
      const std::size_t fixed = is_forward(task.direction) ? forward_bytes_ : backward_bytes_;
      const std::size_t limit = task.images == images ? kMaxWorkspace : fixed;
      task.images = images;
      auto plan = library_->plan(shape_, task, limit);
      if (plan != nullptr) plans_.emplace(key, std::move(plan));
    }
  }

  std::shared_ptr<const LayerLibrary<Shape>> library_;
  Shape shape_;
  std::vector<LibraryTask> tasks_;
  std::map<Key, std::unique_ptr<LibraryPlan>> plans_;
  std::set<int> prepared_;
  Slot forward_, backward_;
  std::size_t forward_bytes_ = 0, backward_bytes_ = 0;
};

template <class Shape>
class WeightOp final : public Op {
 public:
  explicit WeightOp(const LayerPlace& place)
      : shape_(BuiltIn<Shape>::shape_of(place.layer)),
        offsets_(parameter_offsets(place.network, place.layer)),
        relu_(place.relu),
        outputs_(size(static_cast<std::int64_t>(element_count(place.layer.output)))),
        slots_(place.slots),
        library_(place.rule.choose(shape_, tasks_of(offsets_, place)), shape_, place.schedule, place.plan),
        slices_(library_.has(Direction::kBackwardWeights)
                    ? 1
                    : BuiltIn<Shape>::gradient_slices(shape_, place.schedule.images)),
        partials_(place.plan.add(static_cast<std::size_t>(slices_) *
                                     static_cast<std::size_t>(shape_.gradient_floats()) * sizeof(float),
                                 place.schedule.backward, place.schedule.end)) {}

  void prepare(const Pass& pass) override {
    if (!library_.prepare(pass.images)) return;
    forward(pass);
    if (slots_.grad_out) backward(pass);
  }

  void forward(const Pass& pass) const override {
    const float *in = pass.data(slots_.in), *weight = parameter_at(pass, offsets_.weight),
                *bias = parameter_at(pass, offsets_.bias);
    float* out = pass.data(slots_.out);
    if (library_.run(pass, Direction::kForward, {.in = in, .weight = weight, .bias = bias, .result = out}))
      return;
    BuiltIn<Shape>::forward(pass.stream, shape_, pass.images, in, weight, bias, relu_, out);
  }

  void backward(const Pass& pass) const override {
    relu_backward(pass);
    backward_weights(pass);
    write_input_gradient(pass);
  }

  void backward_input(const Pass& pass) const override {
    relu_backward(pass);
    write_input_gradient(pass);
  }

  void backward_weights(const Pass& pass) const override {
    const float *in = pass.data(slots_.in), *grad_out = pass.data(slots_.grad_out);
    float* gradient = pass.data(partials_);
    if (!library_.run(pass, Direction::kBackwardWeights,
                      {.in = in, .grad_out = grad_out, .result = gradient}))
      BuiltIn<Shape>::backward_weights(pass.stream, shape_, pass.images, slices_, in, grad_out, gradient);
  }

  std::vector<PartialGradient> gradients() const override {
    return {{partials_, offsets_.weight, shape_.gradient_floats(), slices_}};
  }

 private:
  // Takes the gradient back through the relu that is fused into the op, in place.
  void relu_backward(const Pass& pass) const {
    if (!relu_) return;
    float* gradient = pass.data(slots_.grad_out);
    const float* out = pass.data(slots_.out);
    activation_backward(pass.stream, Activation::kRelu, 0, pass.images * outputs_, gradient, out, out, false,
                        gradient);
  }

  void write_input_gradient(const Pass& pass) const {
    if (!slots_.grad_in) return;
    const float *grad_out = pass.data(slots_.grad_out), *weight = parameter_at(pass, offsets_.weight);
    float* grad_in = pass.data(slots_.grad_in);
    if (!library_.run(pass, Direction::kBackwardInput,
                      {.weight = weight, .grad_out = grad_out, .result = grad_in}))
      BuiltIn<Shape>::backward_input(pass.stream, shape_, pass.images, grad_out, weight, slots_.add, grad_in);
  }

  Shape shape_;
  ParameterOffsets offsets_;
  bool relu_;
  int outputs_;  // floats of one image
  OpSlots slots_;
  LibraryPlans<Shape> library_;
  int slices_;
  Slot partials_;
};

}  // namespace

std::unique_ptr<Op> make_layer_op(const layers::Conv2d&, const LayerPlace& place) {
  return std::make_unique<WeightOp<ConvShape>>(place);
}
std::unique_ptr<Op> make_layer_op(const layers::Linear&, const LayerPlace& place) {
  return std::make_unique<WeightOp<LinearShape>>(place);
}

}  // namespace sweep::cuda
