#include "core/kernels/cuda/host/access_count.h"

#include <algorithm>
#include <array>
#include <bit>
#include <unordered_map>

#include "core/kernels/cuda/host/memory_owners.h"
#include "core/kernels/cuda/host/program_memory.h"
#include "core/kernels/cuda/host/warp_request.h"

namespace sweep::cuda::host {
namespace {

constexpr std::uintptr_t kWidestAccess = 16;  // bytes
constexpr std::uint64_t kMostWatchedBlocks = 16;

enum class Space : std::uint8_t { kShared, kDevice };

// An access of one thread. `site`: the number of its place in the code.
struct Event {
  std::uintptr_t address;
  std::uint32_t site;
  std::uint8_t bytes;
  Space space;
  bool writes;

  bool is_like(const Event& other) const { return space == other.space && writes == other.writes; }
};

// The events of a thread since the last barrier.
struct Thread {
  unsigned number;
  std::size_t begin, end;
};

// A place in the code.
struct Site {
  // Whether it has always come right after `before`, and in the same piece of kWidestAccess bytes.
  enum class Follows : std::uint8_t { kUnknown, kAlways, kNotAlways } follows = Follows::kUnknown;
  std::uint32_t before = 0;
};

struct Request {
  WarpRequest lanes;
  Space space = Space::kShared;
  bool writes = false;
};

// The requests of a warp between two barriers: those of a site are numbered by how often a thread has been
// there.
class WarpRequests {
 public:
  void clear() {
    used_ = 0;
    for (const std::uint32_t site : sites_) of_site_[site].clear();
    sites_.clear();
  }
  void begin_lane() {
    for (const std::uint32_t site : sites_) visits_[site] = 0;
  }
  void add(unsigned lane, const Event& event, unsigned bytes) {
    if (event.site >= of_site_.size()) {
      of_site_.resize(event.site + 1);
      visits_.resize(event.site + 1);
    }
    std::vector<std::uint32_t>& requests = of_site_[event.site];
    if (requests.empty()) {
      sites_.push_back(event.site);
      visits_[event.site] = 0;
    }
    const std::uint32_t visit = visits_[event.site]++;
    if (visit == requests.size()) requests.push_back(new_request(event));
    WarpRequest& request = requests_[requests[visit]].lanes;
    request.lanes |= std::uint32_t{1} << lane;
    request.bytes = std::max(request.bytes, std::bit_ceil(bytes));
    request.addresses[lane] = event.address;
  }
  std::span<const Request> all() const { return std::span(requests_).first(used_); }

 private:
  std::uint32_t new_request(const Event& event) {
    if (used_ == requests_.size()) requests_.emplace_back();
    Request& request = requests_[used_];
    request.lanes.lanes = 0;
    request.lanes.bytes = 0;
    request.space = event.space;
    request.writes = event.writes;
    return static_cast<std::uint32_t>(used_++);
  }

  std::vector<Request> requests_;  // the first used_ of them; the others are kept for their memory
  std::size_t used_ = 0;
  std::vector<std::vector<std::uint32_t>> of_site_;  // by site: indices of requests_, by visit
  std::vector<std::uint32_t> visits_;                // by site: of the lane
  std::vector<std::uint32_t> sites_;                 // that have requests
};

unsigned thread_number() {
  return (thread_index.z * block_size.y + thread_index.y) * block_size.x + thread_index.x;
}
std::uint64_t block_number() {
  return (std::uint64_t{block_index.z} * grid_size.y + block_index.y) * grid_size.x + block_index.x;
}

}  // namespace

double RequestTotals::factor() const {
  return ideal == 0 ? 1.0 : static_cast<double>(cost) / static_cast<double>(ideal);
}

RequestTotals& RequestTotals::operator+=(const RequestTotals& more) {
  requests += more.requests;
  lanes += more.lanes;
  cost += more.cost;
  ideal += more.ideal;
  return *this;
}

struct AccessCount::Implementation {
  explicit Implementation(std::uint64_t most) : most_accesses(most) {}

  // A grid, of which another one may run between two parts.
  struct Watched {
    std::uint64_t number;  // GridPart::grid
    std::uint64_t events = 0;
  };

  const std::uint64_t most_accesses;
  const ProgramMemory program = find_program_memory();
  std::vector<GridCounts> grids = {};
  std::vector<Watched> watched = {};  // of each of them
  std::size_t running = 0;            // which of them
  std::uint64_t block = 0;            // of it, that runs
  bool is_early = false, watches_block = false;
  Range shared = {}, stack = {};
  std::vector<Event> events = {};  // since the last barrier
  std::vector<Thread> threads = {};
  std::vector<Range> device_memory = {};
  std::unordered_map<std::uintptr_t, std::uint32_t> numbers = {};  // of sites
  std::vector<Site> sites = {};
  WarpRequests requests = {};

  // The words like threadIdx are no shared memory, though they lie beside static arrays of it.
  bool is_shared(std::uintptr_t address) const {
    if (shared.contains(address)) return true;
    if (!program.variables.contains(address)) return false;
    const auto is_of = [address](const auto& variable) {
      const auto begin = reinterpret_cast<std::uintptr_t>(&variable);
      return Range{begin, begin + sizeof variable}.contains(address);
    };
    return !is_of(thread_index) && !is_of(block_index) && !is_of(block_size) && !is_of(grid_size) &&
           !is_of(block_memory);
  }

  bool is_device(std::uintptr_t address) const {
    const auto behind =
        std::upper_bound(device_memory.begin(), device_memory.end(), address,
                         [](std::uintptr_t value, const Range& range) { return value < range.begin; });
    return behind != device_memory.begin() && std::prev(behind)->contains(address);
  }

  void note(const void* pointer, std::size_t bytes, bool writes, const void* code) {
    const auto address = reinterpret_cast<std::uintptr_t>(pointer);
    if (!watches_block || stack.contains(address)) return;
    const bool of_block = is_shared(address);
    if (!of_block && !is_device(address)) return;  // parameters, which a GPU has in its constant memory
    const std::uintptr_t place = 2 * reinterpret_cast<std::uintptr_t>(code) + (writes ? 1 : 0);
    const auto [number, is_new] = numbers.try_emplace(place, static_cast<std::uint32_t>(sites.size()));
    if (is_new) sites.emplace_back();
    const unsigned thread = thread_number();
    if (threads.empty() || threads.back().number != thread) threads.push_back({thread, events.size(), 0});
    events.push_back({address, number->second, static_cast<std::uint8_t>(bytes),
                      of_block ? Space::kShared : Space::kDevice, writes});
    threads.back().end = events.size();
  }

  // Learns which sites follow each other.
  void learn() {
    for (const Thread& thread : threads) {
      for (std::size_t i = thread.begin; i < thread.end; ++i) {
        const Event& event = events[i];
        Site& site = sites[event.site];
        if (site.follows == Site::Follows::kNotAlways) continue;
        const Event* const before = i > thread.begin ? &events[i - 1] : nullptr;
        const bool follows = before != nullptr && before->site != event.site && before->is_like(event) &&
                             before->address / kWidestAccess == event.address / kWidestAccess &&
                             (site.follows == Site::Follows::kUnknown || site.before == before->site);
        site.follows = follows ? Site::Follows::kAlways : Site::Follows::kNotAlways;
        if (follows) site.before = before->site;
      }
    }
  }

  // Adds a thread's accesses to the requests of its warp; those that follow each other as one.
  void add_lane(const Thread& thread) {
    requests.begin_lane();
    for (std::size_t i = thread.begin; i < thread.end;) {
      Event event = events[i];
      std::uintptr_t end = event.address + event.bytes;
      for (++i; i < thread.end && sites[events[i].site].follows == Site::Follows::kAlways; ++i) {
        event.address = std::min(event.address, events[i].address);
        end = std::max(end, events[i].address + events[i].bytes);
      }
      requests.add(thread.number % kWarpLanes, event, static_cast<unsigned>(end - event.address));
    }
  }

  void add_warp(GridCounts& counts, IntervalCounts& interval) {
    std::uint32_t shared_reads = 0, device_reads = 0;
    for (const Request& request : requests.all()) {
      const bool of_block = request.space == Space::kShared;
      const RequestCost cost = of_block ? shared_wavefronts(request.lanes) : device_sectors(request.lanes);
      const auto lanes = static_cast<std::uint64_t>(std::popcount(request.lanes.lanes));
      RequestTotals& totals = of_block ? (request.writes ? counts.shared_writes : counts.shared_reads)
                                       : (request.writes ? counts.device_writes : counts.device_reads);
      totals += {.requests = 1, .lanes = lanes, .cost = cost.cost, .ideal = cost.ideal};
      (of_block ? interval.shared_requests : interval.device_requests) += 1;
      (of_block ? interval.shared_wavefronts : interval.device_sectors) += cost.cost;
      if (!request.writes) (of_block ? shared_reads : device_reads) += 1;
    }
    interval.longest_shared = std::max(interval.longest_shared, shared_reads);
    interval.longest_device = std::max(interval.longest_device, device_reads);
  }

  // All warps have done what they do between two barriers.
  void end_interval() {
    if (!watches_block) return;
    GridCounts& counts = grids[running];
    learn();
    std::sort(threads.begin(), threads.end(),
              [](const Thread& a, const Thread& b) { return a.number < b.number; });
    IntervalCounts interval;
    for (std::size_t first = 0; first < threads.size();) {
      const unsigned warp = threads[first].number / kWarpLanes;
      requests.clear();
      for (; first < threads.size() && threads[first].number / kWarpLanes == warp; ++first)
        add_lane(threads[first]);
      add_warp(counts, interval);
    }
    if (block == 0) counts.intervals.push_back(interval);
    watched[running].events += events.size();
    events.clear();
    threads.clear();
  }

  // Whether this block is watched. What blocks do early is little.
  bool watches() const {
    const std::uint64_t step = (grids[running].blocks + kMostWatchedBlocks - 1) / kMostWatchedBlocks;
    return block % step == 0 && (block == 0 || watched[running].events < most_accesses);
  }
};

AccessCount::AccessCount(std::uint64_t most_accesses)
    : implementation_(std::make_unique<Implementation>(most_accesses)) {
  set_grid_observer(this);
}

AccessCount::~AccessCount() { set_grid_observer(nullptr); }

const std::vector<GridCounts>& AccessCount::grids() const { return implementation_->grids; }
void AccessCount::restart() {
  implementation_->grids.clear();
  implementation_->watched.clear();
}

void AccessCount::begin_grid(const GridPart& part) {
  auto& i = *implementation_;
  i.device_memory.clear();
  for (const std::span<const std::byte> piece : all_memory()) i.device_memory.push_back(range_of(piece));
  i.is_early = part.is_early;
  const auto known = std::find_if(i.watched.begin(), i.watched.end(),
                                  [&](const auto& other) { return other.number == part.grid; });
  i.running = static_cast<std::size_t>(known - i.watched.begin());
  if (known != i.watched.end()) return;
  i.watched.push_back({part.grid});
  i.grids.push_back({.kernel = part.kernel,
                     .grid = grid_size,
                     .block = block_size,
                     .blocks = std::uint64_t{grid_size.x} * grid_size.y * grid_size.z});
}

void AccessCount::end_grid() {
  implementation_->end_interval();
  implementation_->watches_block = false;
}

void AccessCount::begin_block(std::span<const std::byte> shared) {
  auto& i = *implementation_;
  i.end_interval();
  i.shared = range_of(shared);
  i.block = block_number();
  i.grids[i.running].shared_bytes = shared.size();
  i.watches_block = i.watches();
  if (i.watches_block && !i.is_early) ++i.grids[i.running].watched_blocks;
}

void AccessCount::pass_barrier() { implementation_->end_interval(); }
void AccessCount::run_on(std::span<const std::byte> stack) { implementation_->stack = range_of(stack); }

void AccessCount::access(const MemoryAccess& access) {
  implementation_->note(access.address, access.bytes, access.kind != AccessKind::kRead, access.code);
}

}  // namespace sweep::cuda::host
