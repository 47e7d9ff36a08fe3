#include "tests/cudart/race_check.h"

#include <link.h>

#include <array>
#include <set>
#include <sstream>
#include <unordered_map>

#include "tests/cudart/grid.h"

namespace sweep::cuda::cudart {
namespace {

// Addresses begin … end − 1.
struct Range {
  std::uintptr_t begin = 0, end = 0;
  bool contains(std::uintptr_t address) const { return address >= begin && address < end; }
};

Range range_of(std::span<const std::byte> bytes) {
  const auto begin = reinterpret_cast<std::uintptr_t>(bytes.data());
  return {begin, begin + bytes.size()};
}

// Where the memory of the running program lies.
struct ProgramMemory {
  std::uintptr_t base = 0;  // of its code: what addr2line takes is counted from here
  Range variables;          // the calling thread's thread_local ones, which static __shared__ arrays are
};

ProgramMemory find_program_memory() {
  ProgramMemory program;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* data) {
        ProgramMemory& found = *static_cast<ProgramMemory*>(data);
        found.base = info->dlpi_addr;
        for (int i = 0; i < info->dlpi_phnum; ++i) {
          if (info->dlpi_phdr[i].p_type != PT_TLS) continue;
          found.variables.begin = reinterpret_cast<std::uintptr_t>(info->dlpi_tls_data);
          found.variables.end = found.variables.begin + info->dlpi_phdr[i].p_memsz;
        }
        return 1;  // The program comes first.
      },
      &program);
  return program;
}

// A thread of a grid at a moment. Epochs are numbered through all blocks of all grids, so two threads with
// the same epoch are of one block, with no barrier between them.
struct Moment {
  std::uint64_t epoch = 0;  // 0: none
  std::uint32_t block = 0, thread = 0;
};

// What is known of one byte.
struct Byte {
  Moment write, read;  // the last ones
  std::uint64_t write_grid = 0, read_grid = 0;
  bool is_atomic = false;          // the last write
  bool many_threads_read = false;  // in the epoch of `read`
  bool many_blocks_read = false;   // in the grid of `read`
};

constexpr std::size_t kPageBytes = 1024;
using Page = std::array<Byte, kPageBytes>;

}  // namespace

struct RaceCheck::Implementation {
  const ProgramMemory program = find_program_memory();
  Range shared, stack;  // of the grid, of the threads that run
  std::uint64_t grid = 0, epoch = 0;
  std::uint64_t accesses = 0;
  std::unordered_map<std::uintptr_t, std::unique_ptr<Page>> pages;
  std::uintptr_t last_number = 0;
  Page* last_page = nullptr;
  std::vector<std::string> races;
  std::set<std::uintptr_t> reported;

  Byte& byte(std::uintptr_t address) {
    const std::uintptr_t number = address / kPageBytes;
    if (last_page == nullptr || number != last_number) {
      std::unique_ptr<Page>& page = pages[number];
      if (page == nullptr) page = std::make_unique<Page>();
      last_number = number;
      last_page = page.get();
    }
    return (*last_page)[address % kPageBytes];
  }

  static Moment now(std::uint64_t epoch) {
    return {.epoch = epoch,
            .block = (block_index.z * grid_size.y + block_index.y) * grid_size.x + block_index.x,
            .thread = (thread_index.z * block_size.y + thread_index.y) * block_size.x + thread_index.x};
  }

  void note(const void* pointer, std::size_t bytes, AccessKind access, const void* code) {
    const auto address = reinterpret_cast<std::uintptr_t>(pointer);
    if (stack.contains(address)) return;
    ++accesses;
    const Moment moment = now(epoch);
    const bool of_block = shared.contains(address) || program.variables.contains(address);
    for (std::size_t i = 0; i < bytes; ++i) note(byte(address + i), moment, of_block, access, code);
  }

  void note(Byte& byte, const Moment& moment, bool of_block, AccessKind access, const void* code) {
    // What another block has done to its shared memory is not seen.
    const auto concerns = [&](const Moment& other, std::uint64_t of_grid) {
      return of_grid == grid && (!of_block || other.block == moment.block);
    };
    const auto races_with = [&](const Moment& other) {
      return other.block != moment.block || (other.epoch == epoch && other.thread != moment.thread);
    };
    const bool was_written = concerns(byte.write, byte.write_grid);
    if (was_written && races_with(byte.write) && !(access == AccessKind::kAtomic && byte.is_atomic))
      report(byte.write, "wrote", moment, access, of_block, code);
    if (access == AccessKind::kRead) {
      // The host's thread_local variables are next to static shared arrays, but kernels do not write them.
      if (of_block && !was_written && byte.write_grid != 0)
        report(byte.write, "wrote, and nobody of its own block", moment, access, of_block, code);
      const bool same_epoch = byte.read.epoch == epoch, same_grid = byte.read_grid == grid;
      byte.many_threads_read = same_epoch && (byte.many_threads_read || byte.read.thread != moment.thread);
      byte.many_blocks_read = same_grid && (byte.many_blocks_read || byte.read.block != moment.block);
      byte.read = moment;
      byte.read_grid = grid;
      return;
    }
    if (concerns(byte.read, byte.read_grid)) {
      const bool others = (byte.many_threads_read && byte.read.epoch == epoch) ||
                          (byte.many_blocks_read && !of_block) || races_with(byte.read);
      if (others) report(byte.read, "read", moment, access, of_block, code);
    }
    byte.write = moment;
    byte.write_grid = grid;
    byte.is_atomic = access == AccessKind::kAtomic;
  }

  void report(const Moment& other, const char* did, const Moment& moment, AccessKind access, bool of_block,
              const void* code) {
    const auto place = reinterpret_cast<std::uintptr_t>(code) - program.base;
    if (!reported.insert(place).second) return;
    const char* const does = access == AccessKind::kRead    ? "reads"
                             : access == AccessKind::kWrite ? "writes"
                                                            : "adds atomically to";
    std::ostringstream text;
    text << "kernel " << grid << ": thread " << moment.thread << " of block " << moment.block << ' ' << does
         << (of_block ? " shared" : " device") << " memory that thread " << other.thread << " of block "
         << other.block << ' ' << did << "; at 0x" << std::hex << place << " of the program";
    races.push_back(text.str());
  }
};

RaceCheck::RaceCheck() : implementation_(std::make_unique<Implementation>()) { set_race_check(this); }
RaceCheck::~RaceCheck() { set_race_check(nullptr); }

const std::vector<std::string>& RaceCheck::races() const { return implementation_->races; }
std::uint64_t RaceCheck::accesses() const { return implementation_->accesses; }

void RaceCheck::begin_grid(std::uint64_t grid) { implementation_->grid = grid; }

void RaceCheck::begin_block(std::span<const std::byte> shared) {
  implementation_->shared = range_of(shared);
  ++implementation_->epoch;
}

void RaceCheck::pass_barrier() { ++implementation_->epoch; }
void RaceCheck::run_on(std::span<const std::byte> stack) { implementation_->stack = range_of(stack); }

void RaceCheck::access(const void* address, std::size_t bytes, AccessKind kind, const void* code) {
  implementation_->note(address, bytes, kind, code);
}

}  // namespace sweep::cuda::cudart
