// Batch normalisation and pooling in kernel_comparison.h: layers whose time goes into the numbers that they
// read and write.
#include <cstring>
#include <vector>

#include "core/base/error.h"
#include "core/kernels/cuda/libraries/comparison_arrays.h"
#include "core/kernels/cuda/libraries/kernel_comparison.h"

namespace sweep::cuda {
namespace {

// Multiplications that a GPU does while it reads or writes one float. Data centre GPUs do about 20 (H100: 67
// TFLOP/s of multiply-adds beside 3.35 TB/s), others more.
constexpr std::int64_t kPerFloat = 16;

constexpr std::size_t kMaxCompared = 1 << 20;

std::size_t size(int count) { return static_cast<std::size_t>(count); }

// The steps of a comparison. Derived has run_builtin(), run_library() and results_agree().
template <class Derived>
class Turns {
 public:
  Comparison compare(const KernelTimer& timer) {
    Comparison comparison;
    derived().run_builtin();
    if (!library_runs()) return comparison;
    comparison.agree = derived().results_agree();
    if (!comparison.agree) return comparison;
    comparison.builtin_seconds = timer(stream_, [&] { derived().run_builtin(); });
    comparison.library_seconds = timer(stream_, [&] { derived().run_library(); });
    return comparison;
  }

  bool library_runs() {
    try {
      derived().run_library();
      return true;
    } catch (const DeviceError&) {
      return false;
    }
  }

 protected:
  bool same(const RandomArray& a, const RandomArray& b, std::size_t count) {
    count = std::min(count, kMaxCompared);
    return nearly_equal(to_host<float>(stream_, a.data(), count), to_host<float>(stream_, b.data(), count));
  }

  Stream stream_;

 private:
  Derived& derived() { return static_cast<Derived&>(*this); }
};

class BatchNormComparer final : public Turns<BatchNormComparer> {
 public:
  BatchNormComparer(const BatchNormShape& shape, const LibraryTask& task, const LibraryPlan& plan)
      : shape_(shape),
        task_(task),
        plan_(plan),
        floats_(size(task.images) * size(shape.channels) * size(shape.plane)),
        in_(stream_, floats_, 1),
        grad_out_(stream_, task.direction == Direction::kBackwardInput ? floats_ : 0, 2),
        weight_(stream_, channels(), 3),
        bias_(stream_, channels(), 4),
        scratch_(size(batch_norm_scratch_floats(shape, task.images)), "the choice of kernels"),
        workspace_(plan.workspace_bytes(), "the choice of kernels"),
        builtin_(stream_, shape, floats_),
        library_(stream_, shape, floats_) {
    for (const Side* side : {&builtin_, &library_}) {
      if (task.direction == Direction::kBackwardInput) {
        batch_norm_statistics(stream_, shape_, task_.images, in_.data(), scratch_.data(), side->mean.data(),
                              side->inverse.data(), side->running_mean.data(), side->running_var.data());
      }
    }
  }

  void run_builtin() {
    const Side& s = builtin_;
    if (task_.direction == Direction::kBackwardInput) {
      batch_norm_sum_gradients(stream_, shape_, task_.images, in_.data(), grad_out_.data(), s.mean.data(),
                               s.inverse.data(), scratch_.data(), s.grad_parameters.data(), nullptr);
      batch_norm_backward(stream_, shape_, task_.images, task_.images, in_.data(), grad_out_.data(),
                          s.mean.data(), s.inverse.data(), weight_.data(), s.grad_parameters.data(),
                          task_.add, s.result.data());
      return;
    }
    if (task_.direction == Direction::kForward) {
      batch_norm_statistics(stream_, shape_, task_.images, in_.data(), scratch_.data(), s.mean.data(),
                            s.inverse.data(), s.running_mean.data(), s.running_var.data());
    } else {
      batch_norm_running(stream_, shape_, s.running_mean.data(), s.running_var.data(), s.mean.data(),
                         s.inverse.data());
    }
    batch_norm_forward(stream_, shape_, task_.images, in_.data(), s.mean.data(), s.inverse.data(),
                       weight_.data(), bias_.data(), s.result.data());
  }

  void run_library() {
    plan_.run(stream_, {.in = in_.data(),
                        .weight = weight_.data(),
                        .bias = bias_.data(),
                        .grad_out = grad_out_.data(),
                        .result = library_.result.data(),
                        .workspace = workspace_.data(),
                        .mean = library_.mean.data(),
                        .inverse = library_.inverse.data(),
                        .running_mean = library_.running_mean.data(),
                        .running_var = library_.running_var.data(),
                        .grad_parameters = library_.grad_parameters.data()});
  }

  bool results_agree() {
    return same(builtin_.result, library_.result, floats_) &&
           same(builtin_.running_mean, library_.running_mean, channels()) &&
           same(builtin_.running_var, library_.running_var, channels()) &&
           (task_.direction != Direction::kBackwardInput ||
            same(builtin_.grad_parameters, library_.grad_parameters, 2 * channels()));
  }

 private:
  // The arrays that one side writes. Both sides start from the same numbers.
  struct Side {
    Side(Stream& stream, const BatchNormShape& shape, std::size_t floats)
        : result(stream, floats, 5),
          mean(stream, size(shape.channels), 6),
          inverse(stream, size(shape.channels), 7),
          running_mean(stream, size(shape.channels), 8),
          running_var(stream, size(shape.channels), 9),
          grad_parameters(stream, 2 * size(shape.channels), 10) {
      const std::vector<float> variances(size(shape.channels), 1.5f);  // positive: the kernels take its root
      stream.upload(running_var.data(), variances.data(), variances.size() * sizeof(float));
    }
    RandomArray result, mean, inverse, running_mean, running_var, grad_parameters;
  };

  std::size_t channels() const { return size(shape_.channels); }

  const BatchNormShape& shape_;
  const LibraryTask& task_;
  const LibraryPlan& plan_;
  const std::size_t floats_;
  RandomArray in_, grad_out_, weight_, bias_;
  Array<float> scratch_;
  Array<std::byte> workspace_;
  Side builtin_, library_;
};

class PoolComparer final : public Turns<PoolComparer> {
 public:
  PoolComparer(const PoolLayer& layer, const LibraryTask& task, const LibraryPlan& plan)
      : layer_(layer),
        task_(task),
        plan_(plan),
        planes_(size(task.images) * size(layer.shape.channels)),
        ins_(planes_ * size(layer.shape.in_height * layer.shape.in_width)),
        outs_(planes_ * size(layer.shape.out_height * layer.shape.out_width)),
        in_(stream_, ins_, 1),
        out_(stream_, outs_, 2),
        grad_out_(stream_, task.direction == Direction::kBackwardInput ? outs_ : 0, 3),
        builtin_(stream_, results(), 4),
        library_(stream_, results(), 4),  // the same numbers: with task.add, both add to them
        argmax_(layer.average ? 0 : outs_, "the choice of kernels"),
        workspace_(plan.workspace_bytes(), "the choice of kernels") {
    if (!layer.average)
      max_pool_forward(stream_, layer_.shape, task_.images, in_.data(), out_.data(), argmax_.data());
  }

  void run_builtin() {
    const PoolShape& s = layer_.shape;
    const int images = task_.images;
    if (task_.direction == Direction::kForward) {
      if (layer_.average)
        return avg_pool_forward(stream_, s, *layer_.average, images, in_.data(), builtin_.data());
      return max_pool_forward(stream_, s, images, in_.data(), builtin_.data(), argmax_.data());
    }
    if (layer_.average)
      return avg_pool_backward(stream_, s, *layer_.average, images, grad_out_.data(), task_.add,
                               builtin_.data());
    max_pool_backward(stream_, s, images, grad_out_.data(), argmax_.data(), task_.add, builtin_.data());
  }

  void run_library() {
    plan_.run(stream_, {.in = in_.data(),
                        .out = out_.data(),
                        .grad_out = grad_out_.data(),
                        .result = library_.data(),
                        .workspace = workspace_.data()});
  }

  bool results_agree() { return same(builtin_, library_, results()); }

 private:
  std::size_t results() const { return task_.direction == Direction::kForward ? outs_ : ins_; }

  const PoolLayer& layer_;
  const LibraryTask& task_;
  const LibraryPlan& plan_;
  const std::size_t planes_, ins_, outs_;
  RandomArray in_, out_, grad_out_, builtin_, library_;
  Array<std::int32_t> argmax_;
  Array<std::byte> workspace_;
};

}  // namespace

std::int64_t products(const BatchNormShape& s, const LibraryTask& task) {
  return kPerFloat * task.images * s.channels * s.plane;
}

std::int64_t products(const PoolLayer& layer, const LibraryTask& task) {
  return kPerFloat * task.images * layer.shape.channels * layer.shape.in_height * layer.shape.in_width;
}

Comparison compare(const BatchNormShape& shape, const LibraryTask& task, const LibraryPlan& plan,
                   const KernelTimer& timer) {
  return BatchNormComparer(shape, task, plan).compare(timer);
}

Comparison compare(const PoolLayer& layer, const LibraryTask& task, const LibraryPlan& plan,
                   const KernelTimer& timer) {
  return PoolComparer(layer, task, plan).compare(timer);
}

bool library_runs(const BatchNormShape& shape, const LibraryTask& task, const LibraryPlan& plan) {
  return BatchNormComparer(shape, task, plan).library_runs();
}

bool library_runs(const PoolLayer& layer, const LibraryTask& task, const LibraryPlan& plan) {
  return PoolComparer(layer, task, plan).library_runs();
}

}  // namespace sweep::cuda
