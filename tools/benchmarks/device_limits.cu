// Measures the peak rates of a GPU: fp32 multiply-adds, copies within its memory, and copies to and from the
// host; and what a short step waits for: the start of a kernel, and a read that the L2 cache answers. Prints
// them with the GPU's properties as one JSON object on standard output. Exit code 77, with the reason, if
// there is no GPU.
#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <vector>

namespace {

constexpr int kThreads = 256, kChains = 8, kRounds = 4096;
constexpr std::size_t kBytes = std::size_t{1} << 30;

void check(cudaError_t error, const char* doing) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "device_limits: error while %s: %s\n", doing, cudaGetErrorString(error));
  std::exit(1);
}

// kChains independent multiply-adds per thread hide the latency of each. Grid: any; block: kThreads.
__global__ void multiply_add(float* out, float factor, float summand) {
  float chains[kChains];
  for (int c = 0; c < kChains; ++c) chains[c] = static_cast<float>(threadIdx.x + c);
  for (int round = 0; round < kRounds; ++round) {
#pragma unroll
    for (int c = 0; c < kChains; ++c) chains[c] = chains[c] * factor + summand;
  }
  float sum = 0;
  for (int c = 0; c < kChains; ++c) sum += chains[c];
  if (sum == 12345.678f) out[0] = sum;  // So that the compiler cannot drop the loop.
}

__global__ void nothing() {}

// Follows a chain of `steps` indices, each read past the L1 cache. Grid and block: one thread.
__global__ void follow(const unsigned* next, int steps, float* out) {
  unsigned at = 0;
  for (int step = 0; step < steps; ++step) at = __ldcg(next + at);
  if (at == ~0u) out[0] = 1;  // So that the compiler cannot drop the loop.
}

// Median time of `work` on the default stream, in seconds, over 10 runs after 2 for warm-up.
double seconds_of(const std::function<void()>& work) {
  cudaEvent_t begin, end;
  check(cudaEventCreate(&begin), "making an event");
  check(cudaEventCreate(&end), "making an event");
  std::vector<float> times;
  for (int i = 0; i < 12; ++i) {
    check(cudaEventRecord(begin), "recording an event");
    work();
    check(cudaEventRecord(end), "recording an event");
    check(cudaEventSynchronize(end), "measuring");
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, begin, end), "reading a time");
    if (i >= 2) times.push_back(milliseconds);
  }
  std::sort(times.begin(), times.end());
  return times[times.size() / 2] / 1e3;
}

// From one kernel of a graph to the next, which waits for it.
double kernel_gap() {
  constexpr int kKernels = 1000;
  cudaStream_t stream = nullptr;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
  check(cudaStreamCreate(&stream), "making a stream");
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed), "starting a graph");
  for (int i = 0; i < kKernels; ++i) nothing<<<1, kThreads, 0, stream>>>();
  check(cudaStreamEndCapture(stream, &graph), "recording a graph");
  check(cudaGraphInstantiate(&executable, graph, 0), "making a graph");
  return seconds_of([&] { check(cudaGraphLaunch(executable, cudaStreamLegacy), "starting a graph"); }) /
         kKernels;
}

// Follows a chain through 1 MiB, more than an L1 cache and less than any L2 cache holds, a line per step.
double l2_latency(unsigned* memory, float* out) {
  constexpr unsigned kLine = 32, kLines = 8192,
                     kStride = 4097;  // in words; in lines, coprime to their number
  std::vector<unsigned> next(kLine * kLines);
  for (unsigned line = 0; line < kLines; ++line) next[line * kLine] = (line + kStride) % kLines * kLine;
  check(cudaMemcpy(memory, next.data(), next.size() * sizeof(unsigned), cudaMemcpyHostToDevice), "copying");
  return seconds_of([&] {
           follow<<<1, 1>>>(memory, kLines, out);
           check(cudaGetLastError(), "starting a kernel");
         }) /
         kLines;
}

double copy_rate(void* to, const void* from, cudaMemcpyKind kind) {
  return static_cast<double>(kBytes) /
         seconds_of([&] { check(cudaMemcpyAsync(to, from, kBytes, kind), "copying"); });
}

}  // namespace

int main() {
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0) {
    std::fprintf(stderr, "device_limits: no GPU\n");
    return 77;
  }
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, 0), "asking for the device");
  const int blocks = properties.multiProcessorCount * 16;
  float* out = nullptr;
  std::byte *a = nullptr, *b = nullptr, *host = nullptr;
  check(cudaMalloc(&out, sizeof(float)), "allocating memory");
  check(cudaMalloc(&a, kBytes), "allocating memory");
  check(cudaMalloc(&b, kBytes), "allocating memory");
  check(cudaMallocHost(&host, kBytes), "allocating pinned memory");
  check(cudaMemset(a, 0, kBytes), "clearing memory");
  const double seconds = seconds_of([&] {
    multiply_add<<<blocks, kThreads>>>(out, 0.999f, 0.5f);
    check(cudaGetLastError(), "starting a kernel");
  });
  const double operations = 2.0 * blocks * kThreads * kChains * kRounds;
  int driver = 0, runtime = 0;
  check(cudaDriverGetVersion(&driver), "asking for the driver");
  check(cudaRuntimeGetVersion(&runtime), "asking for the runtime");
  std::printf(
      "{\"name\": \"%s\", \"multiprocessors\": %d, \"memory_bytes\": %zu, \"capability\": \"%d.%d\", "
      "\"driver_cuda\": %d, \"runtime_cuda\": %d, \"fp32_flops\": %.6g, \"copy_bytes_per_second\": %.6g, "
      "\"upload_bytes_per_second\": %.6g, \"download_bytes_per_second\": %.6g, "
      "\"kernel_gap_seconds\": %.4g, \"l2_latency_seconds\": %.4g}\n",
      properties.name, properties.multiProcessorCount, properties.totalGlobalMem, properties.major,
      properties.minor, driver, runtime, operations / seconds,
      2 * copy_rate(b, a, cudaMemcpyDeviceToDevice),  // read and written
      copy_rate(a, host, cudaMemcpyHostToDevice), copy_rate(host, a, cudaMemcpyDeviceToHost), kernel_gap(),
      l2_latency(reinterpret_cast<unsigned*>(a), out));
  return 0;
}
