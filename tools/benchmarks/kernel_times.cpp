#include "tools/benchmarks/engine_benchmark.h"

#include <cuda_runtime_api.h>
#include <cxxabi.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <regex>
#include <string>
#include <vector>

#include "core/base/error.h"

namespace sweep {
namespace {

void check(cudaError_t error, const char* doing) {
  if (error != cudaSuccess)
    throw DeviceError(std::string("error while ") + doing + ": " + cudaGetErrorString(error));
}

cudaEvent_t new_event() {
  cudaEvent_t event = nullptr;
  check(cudaEventCreateWithFlags(&event, cudaEventDefault), "making an event");
  return event;
}

double microseconds(cudaEvent_t begin, cudaEvent_t end) {
  float milliseconds = 0;
  check(cudaEventElapsedTime(&milliseconds, begin, end), "reading the time between events");
  return 1e3 * static_cast<double>(milliseconds);
}

// To a hundredth: the events' clock knows no less.
double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.empty() ? 0 : std::round(100 * values[values.size() / 2]) / 100;
}

// "ForwardKernel<1, 5>" of "void sweep::cuda::functor_kernel<sweep::cuda::(anonymous namespace)::…>(…)".
std::string short_name(const void* kernel) {
  const char* mangled = nullptr;
  check(cudaFuncGetName(&mangled, kernel), "asking for a kernel's name");
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> demangled(
      abi::__cxa_demangle(mangled, nullptr, nullptr, &status), &std::free);
  std::string name = demangled ? demangled.get() : mangled;
  for (const char* unneeded :
       {"^void ", "sweep::cuda::", R"(\(anonymous namespace\)::)", "_GLOBAL__N_[^:]*::", R"(\([^()]*\)$)"})
    name = std::regex_replace(name, std::regex(unneeded), "");
  return std::regex_replace(name, std::regex("^functor_kernel<(.*?) ?>$"), "$1");
}

}  // namespace

struct KernelTimes::Launches {
  struct Launch {
    std::string name;
    cudaEvent_t begin, end;
    std::vector<double> times;
  };
  std::vector<Launch> all;
  std::vector<double> steps;

  static inline Launches* watching = nullptr;
};

KernelTimes::KernelTimes() : launches_(std::make_unique<Launches>()) { Launches::watching = launches_.get(); }

KernelTimes::~KernelTimes() {
  Launches::watching = nullptr;
  for (const Launches::Launch& launch : launches_->all) {
    cudaEventDestroy(launch.begin);
    cudaEventDestroy(launch.end);
  }
}

void KernelTimes::add_step() {
  std::vector<Launches::Launch>& all = launches_->all;
  if (all.empty()) throw DeviceError("no kernel was seen: is this program linked with --wrap?");
  for (Launches::Launch& launch : all) launch.times.push_back(microseconds(launch.begin, launch.end));
  launches_->steps.push_back(microseconds(all.front().begin, all.back().end));
}

nlohmann::ordered_json KernelTimes::json() const {
  nlohmann::ordered_json kernels = nlohmann::ordered_json::array();
  for (const Launches::Launch& launch : launches_->all)
    kernels.push_back({{"name", launch.name}, {"us", median(launch.times)}});
  return {{"steps", launches_->steps.size()}, {"step_us", median(launches_->steps)}, {"kernels", kernels}};
}

}  // namespace sweep

// What the linker calls the function that it replaces, and its replacement.
// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming)
extern "C" {
cudaError_t __real_cudaLaunchKernel(const void* kernel, dim3 grid, dim3 block, void** arguments,
                                    std::size_t shared_bytes, cudaStream_t stream);

cudaError_t __wrap_cudaLaunchKernel(const void* kernel, dim3 grid, dim3 block, void** arguments,
                                    std::size_t shared_bytes, cudaStream_t stream) {
  using Launches = sweep::KernelTimes::Launches;
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  if (Launches::watching != nullptr) sweep::check(cudaStreamIsCapturing(stream, &status), "capturing");
  if (status == cudaStreamCaptureStatusNone)
    return __real_cudaLaunchKernel(kernel, grid, block, arguments, shared_bytes, stream);
  auto& launch = Launches::watching->all.emplace_back(Launches::Launch{.name = sweep::short_name(kernel),
                                                                       .begin = sweep::new_event(),
                                                                       .end = sweep::new_event(),
                                                                       .times = {}});
  sweep::check(cudaEventRecordWithFlags(launch.begin, stream, cudaEventRecordExternal), "timing");
  const cudaError_t error = __real_cudaLaunchKernel(kernel, grid, block, arguments, shared_bytes, stream);
  sweep::check(cudaEventRecordWithFlags(launch.end, stream, cudaEventRecordExternal), "timing");
  return error;
}
}
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)
