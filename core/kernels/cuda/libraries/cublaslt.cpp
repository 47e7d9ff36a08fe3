// Linear layers with cuBLASLt. The library is column-major: a row-major array [rows][columns] is its matrix
// of `columns` rows. So every product here computes the transpose of what the layer needs.
#include "core/kernels/cuda/libraries/cublaslt.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "core/base/error.h"
#include "core/kernels/cuda/kernels/elementwise.h"

namespace sweep::cuda {
namespace {

void check(cublasStatus_t status, const char* doing) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw DeviceError(std::string("cuda: error of cuBLASLt while ") + doing + ": " +
                    cublaslt().status_string(status) + "; SWEEP_CUDA_KERNELS=builtin trains without it");
}

using Handle = std::shared_ptr<cublasLtContext>;
using Layout = LibraryObject<cublasLtMatrixLayout_t, cublasStatus_t>;
using Operation = LibraryObject<cublasLtMatmulDesc_t, cublasStatus_t>;
using Preference = LibraryObject<cublasLtMatmulPreference_t, cublasStatus_t>;

Handle make_handle() {
  cublasLtHandle_t handle = nullptr;
  check(cublaslt().create(&handle), "opening it");
  return Handle(handle, [](cublasLtHandle_t h) { cublaslt().destroy(h); });
}

// A dense matrix.
Layout make_layout(int rows, int columns) {
  cublasLtMatrixLayout_t layout = nullptr;
  check(cublaslt().layout_create(&layout, CUDA_R_32F, static_cast<std::uint64_t>(rows),
                                 static_cast<std::uint64_t>(columns), rows),
        "describing a matrix");
  return {layout, cublaslt().layout_destroy};
}

Operation make_operation() {
  cublasLtMatmulDesc_t operation = nullptr;
  // Full float32: other compute types use tensor cores with TF32 or less.
  check(cublaslt().desc_create(&operation, CUBLAS_COMPUTE_32F, CUDA_R_32F), "describing a product");
  return {operation, cublaslt().desc_destroy};
}

Preference make_preference() {
  cublasLtMatmulPreference_t preference = nullptr;
  check(cublaslt().preference_create(&preference), "choosing an algorithm");
  return {preference, cublaslt().preference_destroy};
}

template <class Value>
void set(const Operation& operation, cublasLtMatmulDescAttributes_t attribute, const Value& value) {
  check(cublaslt().desc_set(operation.get(), attribute, &value, sizeof value), "describing a product");
}

template <class Value>
void set(const Preference& preference, cublasLtMatmulPreferenceAttributes_t attribute, const Value& value) {
  check(cublaslt().preference_set(preference.get(), attribute, &value, sizeof value),
        "choosing an algorithm");
}

// The largest power of two, up to 256, that the address of a parameter is a multiple of: `floats_before`
// others precede it, from such an address on.
std::uint32_t alignment(int floats_before) {
  constexpr std::uint32_t kMax = 256;
  const std::uint32_t bytes = static_cast<std::uint32_t>(floats_before) * sizeof(float);
  const std::uint32_t lowest = bytes & (~bytes + 1);
  return lowest == 0 || lowest > kMax ? kMax : lowest;
}

constexpr std::uint32_t kArrayAlignment = 256;

// D = op(A) · op(B), m × n, sums of k products; and the epilogue that is applied to D.
struct Product {
  int m, n, k;
  bool transpose_a, transpose_b;
  std::uint32_t align_a, align_b;
  cublasLtEpilogue_t epilogue;
  std::uint32_t align_bias = 0;  // 0: the epilogue has no bias
};

Product product_of(const LinearShape& s, const LibraryTask& task) {
  switch (task.direction) {
    case Direction::kForward:
      // outᵀ [out, images] = (weightᵀ)ᵀ · inᵀ, with a bias per row of D.
      return {s.out_features,
              task.images,
              s.in_features,
              true,
              false,
              alignment(task.weight_offset),
              kArrayAlignment,
              s.bias ? (task.relu ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_BIAS)
                     : (task.relu ? CUBLASLT_EPILOGUE_RELU : CUBLASLT_EPILOGUE_DEFAULT),
              s.bias ? alignment(task.bias_offset) : 0};
    case Direction::kBackwardWeights:
      // gradientᵀ [in, out] = inᵀ · (grad_outᵀ)ᵀ; the bias' gradient, one per column of D, sums B over k.
      return {s.in_features,
              s.out_features,
              task.images,
              false,
              true,
              kArrayAlignment,
              kArrayAlignment,
              s.bias ? CUBLASLT_EPILOGUE_BGRADB : CUBLASLT_EPILOGUE_DEFAULT,
              s.bias ? alignment(s.weights()) : 0};
    default:
      // grad_inᵀ [in, images] = weightᵀ · grad_outᵀ
      return {s.in_features,   task.images,
              s.out_features,  false,
              false,           alignment(task.weight_offset),
              kArrayAlignment, CUBLASLT_EPILOGUE_DEFAULT};
  }
}

class LinearPlan final : public LibraryPlan {
 public:
  // choose() has to follow, before run().
  LinearPlan(Handle handle, const LinearShape& shape, const LibraryTask& task, const Product& product)
      : handle_(std::move(handle)),
        shape_(shape),
        task_(task),
        has_bias_(product.align_bias > 0),
        operation_(make_operation()),
        a_(make_layout(product.transpose_a ? product.k : product.m,
                       product.transpose_a ? product.m : product.k)),
        b_(make_layout(product.transpose_b ? product.n : product.k,
                       product.transpose_b ? product.k : product.n)),
        d_(make_layout(product.m, product.n)),
        builtin_relu_(task.direction == Direction::kForward && task.relu &&
                      (product.epilogue & CUBLASLT_EPILOGUE_RELU) == 0),
        builtin_bias_gradient_(task.direction == Direction::kBackwardWeights && shape.bias && !has_bias_) {
    const auto transpose = [](bool yes) { return std::int32_t{yes ? CUBLAS_OP_T : CUBLAS_OP_N}; };
    set(operation_, CUBLASLT_MATMUL_DESC_TRANSA, transpose(product.transpose_a));
    set(operation_, CUBLASLT_MATMUL_DESC_TRANSB, transpose(product.transpose_b));
    set(operation_, CUBLASLT_MATMUL_DESC_EPILOGUE, static_cast<std::uint32_t>(product.epilogue));
    // The heuristic looks only at the pointer's alignment, so any address with the right one will do.
    if (has_bias_) set_bias(reinterpret_cast<const void*>(static_cast<std::uintptr_t>(product.align_bias)));
  }

  // Selects the algorithm that the library's heuristic thinks fastest. False if it has none.
  bool choose(const Product& product, std::size_t workspace_limit) {
    const Preference preference = make_preference();
    set(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, static_cast<std::uint64_t>(workspace_limit));
    set(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
        static_cast<std::uint32_t>(task_.deterministic ? kOrdered : CUBLASLT_REDUCTION_SCHEME_MASK));
    set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, product.align_a);
    set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, product.align_b);
    set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, kArrayAlignment);
    set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, kArrayAlignment);
    cublasLtMatmulHeuristicResult_t best{};
    int count = 0;
    const cublasStatus_t status =
        cublaslt().heuristic(handle_.get(), operation_.get(), a_.get(), b_.get(), d_.get(), d_.get(),
                             preference.get(), 1, &best, &count);
    if (status != CUBLAS_STATUS_SUCCESS || count == 0 || best.state != CUBLAS_STATUS_SUCCESS) return false;
    algorithm_ = best.algo;
    workspace_bytes_ = best.workspaceSize;
    deterministic_ = task_.deterministic || is_ordered(algorithm_);
    return workspace_bytes_ <= workspace_limit;
  }

  bool deterministic() const override { return deterministic_; }

  std::size_t workspace_bytes() const override { return workspace_bytes_; }

  void run(Stream& stream, const LibraryArrays& arrays) const override {
    const bool forward = task_.direction == Direction::kForward,
               weights = task_.direction == Direction::kBackwardWeights;
    const float* a = weights ? arrays.in : arrays.weight;
    const float* b = forward ? arrays.in : arrays.grad_out;
    float* bias_gradient = arrays.result + shape_.weights();
    if (has_bias_) set_bias(forward ? arrays.bias : bias_gradient);
    const float alpha = 1, beta = task_.direction == Direction::kBackwardInput && task_.add ? 1 : 0;
    check(cublaslt().matmul(handle_.get(), operation_.get(), &alpha, a, a_.get(), b, b_.get(), &beta,
                            arrays.result, d_.get(), arrays.result, d_.get(), &algorithm_, arrays.workspace,
                            workspace_bytes_, stream.native()),
          "starting a product");
    if (builtin_relu_) {
      activation_forward(stream, Activation::kRelu, 0, task_.images * shape_.out_features, arrays.result,
                         arrays.result);
    }
    // Treated as a layer without weights, only a bias.
    if (builtin_bias_gradient_) {
      const LinearGradient layer{{0, shape_.out_features, true}, nullptr, arrays.grad_out, bias_gradient};
      linear_backward_weights(stream, {&layer, 1}, task_.images, 1);
    }
  }

 private:
  // Split-K with a separate reduction: the order is fixed. In-place reduction adds whichever block comes
  // first.
  static constexpr cublasLtReductionScheme_t kOrdered = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;

  static bool is_ordered(const cublasLtMatmulAlgo_t& algorithm) {
    std::uint32_t scheme = 0;
    std::size_t written = 0;
    const cublasStatus_t status = cublaslt().algo_get(&algorithm, CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME,
                                                      &scheme, sizeof scheme, &written);
    return status == CUBLAS_STATUS_SUCCESS &&
           (scheme == CUBLASLT_REDUCTION_SCHEME_NONE || scheme == kOrdered);
  }

  void set_bias(const void* bias) const { set(operation_, CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias); }

  Handle handle_;
  LinearShape shape_;
  LibraryTask task_;
  bool has_bias_;
  Operation operation_;
  Layout a_, b_, d_;
  bool builtin_relu_, builtin_bias_gradient_;  // what the epilogue lacks and built-in kernels do
  cublasLtMatmulAlgo_t algorithm_{};
  bool deterministic_ = true;
  std::size_t workspace_bytes_ = 0;
};

class LinearLibrary final : public LayerLibrary<LinearShape> {
 public:
  LinearLibrary() : handle_(make_handle()), relu_keeps_nan_(probe_relu()) {}

  std::string name() const override { return "cuBLASLt " + cublaslt().version; }

  std::unique_ptr<LibraryPlan> plan(const LinearShape& shape, const LibraryTask& task,
                                    std::size_t workspace_limit) const override {
    if (task.images <= 0) return nullptr;
    Product product = product_of(shape, task);
    if (!relu_keeps_nan_) product = without_relu(product);
    if (auto plan = planned(shape, task, product, workspace_limit)) return plan;
    // Again with the plainest epilogue, which every algorithm has; built-in kernels do the rest.
    if (task.direction == Direction::kBackwardWeights) {
      product.epilogue = CUBLASLT_EPILOGUE_DEFAULT;
      product.align_bias = 0;
    }
    return planned(shape, task, without_relu(product), workspace_limit);
  }

 private:
  static Product without_relu(Product product) {
    if (product.epilogue == CUBLASLT_EPILOGUE_RELU_BIAS) product.epilogue = CUBLASLT_EPILOGUE_BIAS;
    if (product.epilogue == CUBLASLT_EPILOGUE_RELU) product.epilogue = CUBLASLT_EPILOGUE_DEFAULT;
    return product;
  }

  std::unique_ptr<LinearPlan> planned(const LinearShape& shape, const LibraryTask& task,
                                      const Product& product, std::size_t workspace_limit) const {
    auto plan = std::make_unique<LinearPlan>(handle_, shape, task, product);
    return plan->choose(product, workspace_limit) ? std::move(plan) : nullptr;
  }

  // Whether the relu epilogue keeps NaNs, as this engine's relu does. The documentation says max(x, 0), which
  // leaves it open, and a diverged training must not look healthy.
  bool probe_relu() const {
    constexpr int kSize = 64;
    const LinearShape shape{kSize, kSize, true};
    const LibraryTask task{.direction = Direction::kForward, .images = kSize, .relu = true};
    const auto plan = planned(shape, task, product_of(shape, task), 0);
    if (plan == nullptr) return false;
    Stream stream;
    std::vector<float> values(kSize * kSize, std::numeric_limits<float>::quiet_NaN());
    const Array<float> nans(values.size(), "a test of cuBLASLt"), result(values.size(), "a test of cuBLASLt");
    stream.upload(nans.data(), values.data(), values.size() * sizeof(float));
    plan->run(stream,
              {.in = nans.data(), .weight = nans.data(), .bias = nans.data(), .result = result.data()});
    stream.download(values.data(), result.data(), values.size() * sizeof(float));
    for (const float value : values) {
      if (!std::isnan(value)) return false;
    }
    return true;
  }

  Handle handle_;
  bool relu_keeps_nan_;
};

}  // namespace

CublasLt::CublasLt() : file({"libcublasLt.so." + std::to_string(CUBLAS_VER_MAJOR)}) {
  if (file) version = file.require_version("cuBLASLt", get_version(), CUBLAS_VER_MAJOR);
}

const CublasLt& cublaslt() {
  static const CublasLt library;
  return library;
}

template <>
std::shared_ptr<const LayerLibrary<LinearShape>> open_library(int device) {
  if (!cublaslt().file) return nullptr;
  use_device(device);
  try {
    return std::make_shared<LinearLibrary>();
  } catch (const DeviceError&) {
    return nullptr;  // the device is not supported
  }
}

}  // namespace sweep::cuda
