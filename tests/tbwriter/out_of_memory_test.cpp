// What a SummaryWriter writes after memory has run out in one of its calls.

#include <new>

#include "tbwriter/event_reader.h"
#include "tbwriter/summary_writer.h"
#include "tests/support/test.h"

namespace {
thread_local int allocations_left = -1;  // until one fails; below 0: none does
}  // namespace

// Not inlined: GCC 12 then warns of free() for what new made.
[[gnu::noinline]] void* operator new(std::size_t size) {
  if (allocations_left >= 0 && allocations_left-- == 0) throw std::bad_alloc();
  if (void* memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace sweep::tbwriter::tbwriter_out_of_memory_test {

// The plugin in the metadata of the first value in the file, "" if it has none.
std::string first_plugin(const std::filesystem::path& file) {
  EventReader reader(file);
  while (const auto payload = reader.next()) {
    const DecodedEvent event = decode_event(*payload);
    if (!event.values.empty()) return std::string(event.values[0].plugin);
  }
  return "no value";
}

// Whether memory ran out.
bool add_with_few_allocations(SummaryWriter& writer, const std::string& description, int allocations) {
  allocations_left = allocations;
  try {
    writer.add_scalar("a tag that has a description", 1, 0, {.description = description});
    allocations_left = -1;
    return false;
  } catch (const std::bad_alloc&) {
    allocations_left = -1;
    return true;
  }
}

TEST(SummaryWriterWithoutMemory, StillWritesTheMetadataOfATagWithItsFirstValue) {
  int failures = 0;
  // The lengths make each part of the record in turn the one that the buffer has no room for.
  for (std::size_t length = 1; length < 150; ++length) {
    const std::string description(length, 'x');
    for (int allocations = 0;; ++allocations) {
      const test::TemporaryDirectory directory;
      SummaryWriter writer(directory / "run", {.flush_interval = std::chrono::hours(1)});
      const bool failed = add_with_few_allocations(writer, description, allocations);
      if (failed) writer.add_scalar("a tag that has a description", 1, 0, {.description = description});
      writer.close();
      ASSERT_EQ(first_plugin(writer.path()), "scalars") << allocations << " allocations, " << length;
      if (!failed) break;
      ++failures;
    }
  }
  EXPECT_GT(failures, 300);
}

}  // namespace sweep::tbwriter::tbwriter_out_of_memory_test
