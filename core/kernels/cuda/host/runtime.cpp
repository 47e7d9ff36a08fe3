// runtime.h on the host, for tests.
//
// What a GPU does asynchronously is done here as late as the rules allow: a stream only collects work, and
// does it when somebody waits for it. That is the worst case for a program that overwrites a buffer before
// its copy is done, reads a result without waiting, or misses an event between two streams: it goes wrong
// here every time, and on a GPU once a week. New memory is filled with NaNs for the same reason.
#include "core/kernels/cuda/runtime/runtime.h"

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <new>
#include <optional>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/base/random.h"
#include "core/kernels/cuda/host/current_device.h"
#include "core/kernels/cuda/host/kernel_launch.h"
#include "core/kernels/cuda/host/memory_limit.h"
#include "core/kernels/cuda/host/memory_owners.h"
#include "core/kernels/cuda/host/stream_order.h"
#include "core/kernels/cuda/runtime/host_grid.h"
#include "core/kernels/cuda/runtime/kernel_overlap.h"

namespace sweep::cuda {
namespace {

// Work that a stream collects at most: nobody may ever wait for a training stream.
constexpr std::size_t kLongestQueue = 4096;

// The seed of set_stream_seed(), and how often it was set.
std::atomic<std::uint64_t> stream_seed{0}, seeds_set{0};

// The calling thread's chances; nullptr without a seed.
RandomStream* chance() {
  thread_local std::optional<RandomStream> random;
  thread_local std::uint64_t set = 0;
  static std::atomic<std::uint64_t> threads{0};
  thread_local const std::uint64_t number = threads++;
  if (set != seeds_set) {
    set = seeds_set;
    random.reset();
    if (stream_seed != 0) random.emplace(stream_seed + (number << 32), RandomUse::kSearch);
  }
  return random ? &*random : nullptr;
}

thread_local int device = 0;
thread_local bool capturing = false;  // the thread captures a graph

void require_not_capturing(const char* operation) {
  if (capturing)
    throw DeviceError(std::string("cuda: error while capturing a graph: it cannot hold ") + operation);
}

// Pieces of work, on average, after which a stream switches between eager and lazy: a few steps' work.
constexpr std::uint32_t kWorkPerSwitch = 60;

std::byte* filled_with_nans(std::size_t bytes) {
  if (bytes == 0) return nullptr;
  require_not_capturing("an allocation");
  constexpr std::size_t kAlignment = 256;  // of cudaMalloc()
  void* data = nullptr;
  if (posix_memalign(&data, kAlignment, bytes) != 0) throw std::bad_alloc();
  std::memset(data, 0xFF, bytes);
  return static_cast<std::byte*>(data);
}

}  // namespace

void host::set_stream_seed(std::uint64_t seed) {
  stream_seed = seed;
  ++seeds_set;
}

int host::current_device() { return device; }

void use_device(int index) {
  if (index < 0 || index >= host::device_count())
    throw DeviceError("cuda: there is no device " + std::to_string(index));
  device = index;
}

void reach_device(int /*index*/) {}

std::size_t free_memory() { return host::memory_free(); }

Memory::Memory(std::size_t bytes, const std::string& purpose) : bytes_(bytes) {
  if (bytes > 0) require_not_capturing("an allocation");
  host::reserve_memory(bytes, purpose);
  data_ = filled_with_nans(bytes);
  host::note_memory(data_, bytes);
}

Memory::Memory(Memory&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}

Memory& Memory::operator=(Memory&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

Memory::~Memory() {
  host::release_memory(bytes_);
  host::forget_memory(data_);
  std::free(data_);
}

PinnedMemory::PinnedMemory(std::size_t bytes) : data_(filled_with_nans(bytes)), bytes_(bytes) {}

PinnedMemory::PinnedMemory(PinnedMemory&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}

PinnedMemory& PinnedMemory::operator=(PinnedMemory&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

PinnedMemory::~PinnedMemory() { std::free(data_); }

// A piece of a stream's work.
struct Work {
  std::function<void()> run;
  // Of a kernel that may be started early, before the kernel in front of it runs: does so, and returns the
  // rest.
  std::function<std::function<void()>()> start = nullptr;
};

struct Graph::Implementation {
  std::vector<Work> work;
};

Graph::Graph() = default;
Graph::Graph(std::unique_ptr<Implementation> implementation) : implementation_(std::move(implementation)) {}
Graph::Graph(Graph&&) noexcept = default;
Graph& Graph::operator=(Graph&&) noexcept = default;
Graph::~Graph() = default;
std::size_t Graph::size() const { return implementation_ ? implementation_->work.size() : 0; }

struct Stream::Implementation {
  // nullptr once the stream is gone: events outlive it.
  const std::shared_ptr<Implementation*> self = std::make_shared<Implementation*>(this);
  std::deque<Work> queue;
  std::uint64_t added = 0, done = 0;  // pieces of work since the stream was made
  std::vector<Work>* recording = nullptr;
  bool eager = false;
  const int of_device = device;
  const bool overlap = kernels_may_overlap();
  bool after_kernel = false;  // whether the last work that was put on it is a kernel
  Changes changes = Changes::kResults;

  Implementation() = default;
  ~Implementation() { *self = nullptr; }
  Implementation(const Implementation&) = delete;
  Implementation& operator=(const Implementation&) = delete;

  void add(Work work) {
    after_kernel = false;
    if (recording != nullptr) {
      recording->push_back(std::move(work));
      return;
    }
    queue.push_back(std::move(work));
    ++added;
    if (queue.size() >= kLongestQueue) run_until(added);
    RandomStream* const random = chance();
    if (random != nullptr && random->below(kWorkPerSwitch) == 0) eager = !eager;
    if (random != nullptr && eager) run_until(added);
  }

  // A kernel that may overlap starts before the one in front of it runs, which has waited for the one before
  // that: the earliest moment at which a GPU may start it.
  void run_until(std::uint64_t count) {
    std::function<void()> started;
    while (done < count) {
      const Work work = pop();
      const std::function<void()> run = started ? std::exchange(started, nullptr) : work.run;
      if (done < count && queue.front().start) started = queue.front().start();
      run();
    }
  }

  Work pop() {
    Work work = std::move(queue.front());
    queue.pop_front();
    ++done;
    return work;
  }

  void require_device() const {
    if (of_device == device) return;
    throw DeviceError("cuda: a stream of device " + std::to_string(of_device) +
                      " gets a kernel from a thread on " + std::to_string(device));
  }

  void require_not_recording(const char* operation) const {
    if (recording != nullptr) throw DeviceError(std::string("cuda: a graph cannot hold ") + operation);
  }
};

struct Event::Implementation {
  explicit Implementation(Kind k) : kind(k) {}
  const Kind kind;
  std::shared_ptr<Stream::Implementation*> stream;  // that it was recorded on, if it was
  std::uint64_t position = 0;
  std::shared_ptr<double> seconds = std::make_shared<double>();  // kTime: when the stream reached it
};

namespace {

// A stream that is gone has nothing left to do.
void run_until_recorded(const std::shared_ptr<Stream::Implementation*>& stream, std::uint64_t position) {
  if (stream != nullptr && *stream != nullptr) (*stream)->run_until(position);
}

}  // namespace

Event::Event(Kind kind) : implementation_(std::make_unique<Implementation>(kind)) {}
Event::Event(Event&&) noexcept = default;
Event& Event::operator=(Event&&) noexcept = default;
Event::~Event() = default;

void Event::wait() const {
  require_not_capturing("a wait for an event");
  run_until_recorded(implementation_->stream, implementation_->position);
}

double Event::seconds_since(const Event& begin) const {
  for (const Event* event : {&begin, this}) {
    if (event->implementation_->stream == nullptr || event->implementation_->kind != Kind::kTime)
      throw DeviceError("cuda: error while reading the time between events: they keep none");
  }
  wait();
  return *implementation_->seconds - *begin.implementation_->seconds;
}

Stream::Stream() : implementation_(std::make_unique<Implementation>()) {}
Stream::~Stream() = default;

bool Stream::is_capturing() const { return implementation_->recording != nullptr; }

void Stream::enqueue(std::function<void()> work) { implementation_->add({std::move(work)}); }

void start_kernel(Stream& stream, const void* kernel, LaunchExtent grid, LaunchExtent block,
                  std::size_t shared_bytes, const LaunchTraits& traits, void** arguments) {
  Stream::Implementation& implementation = stream.implementation();
  implementation.require_device();
  const host::KernelLaunch launch(kernel, {grid.x, grid.y, grid.z}, {block.x, block.y, block.z}, shared_bytes,
                                  arguments);
  Work work{[launch] { launch.run(); }};
  if (traits.overlaps && implementation.after_kernel && implementation.overlap)
    work.start = [launch] { return launch.start(); };
  implementation.add(std::move(work));
  implementation.after_kernel = true;
  implementation.changes = traits.changes;
}

bool Stream::may_load_early(Changes what) const {
  return !implementation_->after_kernel || implementation_->changes != what;
}

void Stream::upload(void* device, const void* host, std::size_t bytes) {
  if (bytes == 0) return;
  implementation_->require_not_recording("an upload()");
  wait();
  std::memcpy(device, host, bytes);
}

void Stream::upload_pinned(void* device, const std::byte* pinned, std::size_t bytes) {
  if (bytes == 0) return;
  enqueue([=] { std::memcpy(device, pinned, bytes); });
}

void Stream::download(void* host, const void* device, std::size_t bytes) {
  if (bytes == 0) return;
  implementation_->require_not_recording("a download()");
  wait();
  std::memcpy(host, device, bytes);
}

void Stream::clear(void* device, std::size_t bytes) {
  if (bytes == 0) return;
  enqueue([=] { std::memset(device, 0, bytes); });
}

void Stream::copy(void* to, const void* from, std::size_t bytes) {
  if (bytes == 0) return;
  enqueue([=] { std::memcpy(to, from, bytes); });
}

void Stream::copy_between(void* to, int to_device, const void* from, int from_device, std::size_t bytes) {
  if (bytes == 0) return;
  host::require_memory_of(to_device, to, bytes);
  host::require_memory_of(from_device, from, bytes);
  enqueue([=] { std::memcpy(to, from, bytes); });
}

void Stream::wait() {
  implementation_->require_not_recording("a wait()");
  implementation_->run_until(implementation_->added);
}

void Stream::record(const Event& event) {
  implementation_->require_not_recording("a record()");
  implementation_->after_kernel = false;
  if (event.implementation().kind == Event::Kind::kTime) {
    enqueue([seconds = event.implementation().seconds] {
      *seconds = std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
    });
  }
  event.implementation().stream = implementation_->self;
  event.implementation().position = implementation_->added;
}

void Stream::wait_for(const Event& event) {
  const std::shared_ptr<Implementation*> other = event.implementation().stream;
  implementation_->require_not_recording("a wait_for()");
  implementation_->after_kernel = false;
  if (other == nullptr || other == implementation_->self) return;
  enqueue([other, position = event.implementation().position] { run_until_recorded(other, position); });
}

Graph Stream::capture(const std::function<void()>& work) {
  auto graph = std::make_unique<Graph::Implementation>();
  implementation_->recording = &graph->work;
  implementation_->after_kernel = false;
  capturing = true;
  try {
    work();
  } catch (...) {
    implementation_->recording = nullptr;
    implementation_->after_kernel = false;
    capturing = false;
    throw;
  }
  implementation_->recording = nullptr;
  implementation_->after_kernel = false;
  capturing = false;
  // CUDA does not say what an upload of it is, and its launches would be for nothing.
  if (graph->work.empty()) throw DeviceError("cuda: error while capturing a graph: there is no work in it");
  return Graph(std::move(graph));
}

void Stream::launch(const Graph& graph) {
  implementation_->require_device();
  for (const Work& work : graph.implementation().work) implementation_->add(work);
}

}  // namespace sweep::cuda
