// The runtime on the host, for tests. What is asynchronous on a GPU is done as late as it may be: a stream
// only collects its work, and does it when somebody waits. So a program that changes memory too early, or
// reads it without waiting, goes wrong here as it could there. New memory is full of NaNs.
#include "core/kernels/cuda/runtime/runtime.h"

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
#include "core/kernels/cuda/host/memory_limit.h"
#include "core/kernels/cuda/host/stream_order.h"

namespace sweep::cuda {
namespace {

// Keeps the queue of a stream that nobody waits for from growing without end.
constexpr std::size_t kLongestQueue = 4096;

thread_local std::optional<RandomStream> chance;

// How much is added to a stream, on average, before it begins or ceases to work at once; some steps' work.
constexpr std::uint32_t kAddsPerMood = 60;

std::byte* filled_with_nans(std::size_t bytes) {
  if (bytes == 0) return nullptr;
  void* data = std::malloc(bytes);
  if (data == nullptr) throw std::bad_alloc();
  std::memset(data, 0xFF, bytes);
  return static_cast<std::byte*>(data);
}

}  // namespace

void host::set_stream_seed(std::uint64_t seed) {
  chance.reset();
  if (seed != 0) chance.emplace(seed, RandomUse::kSearch);
}

void use_device(int /*index*/) {}

std::size_t free_memory() { return host::memory_free(); }

Memory::Memory(std::size_t bytes, const std::string& purpose) : bytes_(bytes) {
  host::reserve_memory(bytes, purpose);
  data_ = filled_with_nans(bytes);
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

struct Graph::Implementation {
  std::vector<std::function<void()>> work;
};

Graph::Graph() = default;
Graph::Graph(std::unique_ptr<Implementation> implementation) : implementation_(std::move(implementation)) {}
Graph::Graph(Graph&&) noexcept = default;
Graph& Graph::operator=(Graph&&) noexcept = default;
Graph::~Graph() = default;
std::size_t Graph::size() const { return implementation_ ? implementation_->work.size() : 0; }

struct Stream::Implementation {
  std::deque<std::function<void()>> queue;
  std::uint64_t added = 0, done = 0;  // since the stream was made
  std::vector<std::function<void()>>* recording = nullptr;
  bool eager = false;

  void add(std::function<void()> work) {
    if (recording != nullptr) {
      recording->push_back(std::move(work));
      return;
    }
    queue.push_back(std::move(work));
    ++added;
    if (queue.size() >= kLongestQueue) run_until(added);
    if (chance && chance->below(kAddsPerMood) == 0) eager = !eager;
    if (chance && eager) run_until(added);
  }

  void run_until(std::uint64_t count) {
    while (done < count) {
      const std::function<void()> work = std::move(queue.front());
      queue.pop_front();
      ++done;
      work();
    }
  }

  void require_not_recording(const char* what) const {
    if (recording != nullptr) throw DeviceError(std::string("cuda: a graph cannot hold ") + what);
  }
};

struct Event::Implementation {
  explicit Implementation(Kind k) : kind(k) {}
  const Kind kind;
  Stream::Implementation* stream = nullptr;
  std::uint64_t position = 0;
  std::shared_ptr<double> seconds = std::make_shared<double>();  // of kTime: when the stream came to it
};

Event::Event(Kind kind) : implementation_(std::make_unique<Implementation>(kind)) {}
Event::Event(Event&&) noexcept = default;
Event& Event::operator=(Event&&) noexcept = default;
Event::~Event() = default;

void Event::wait() const {
  if (implementation_->stream != nullptr) implementation_->stream->run_until(implementation_->position);
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

void Stream::enqueue(std::function<void()> work) { implementation_->add(std::move(work)); }

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

void Stream::wait() {
  implementation_->require_not_recording("a wait()");
  implementation_->run_until(implementation_->added);
}

void Stream::record(const Event& event) {
  if (event.implementation().kind == Event::Kind::kTime) {
    enqueue([seconds = event.implementation().seconds] {
      *seconds = std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
    });
  }
  event.implementation().stream = implementation_.get();
  event.implementation().position = implementation_->added;
}

void Stream::wait_for(const Event& event) {
  Implementation* other = event.implementation().stream;
  if (other == nullptr || other == implementation_.get()) return;
  enqueue([other, position = event.implementation().position] { other->run_until(position); });
}

Graph Stream::capture(const std::function<void()>& work) {
  auto graph = std::make_unique<Graph::Implementation>();
  implementation_->recording = &graph->work;
  try {
    work();
  } catch (...) {
    implementation_->recording = nullptr;
    throw;
  }
  implementation_->recording = nullptr;
  return Graph(std::move(graph));
}

void Stream::launch(const Graph& graph) {
  for (const std::function<void()>& work : graph.implementation().work) implementation_->add(work);
}

}  // namespace sweep::cuda
