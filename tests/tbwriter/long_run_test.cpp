// A run of millions of points.
#include <unistd.h>

#include "tbwriter/event_reader.h"
#include "tbwriter/summary_writer.h"
#include "tests/support/event_files.h"
#include "tests/support/test.h"

namespace sweep::tbwriter::long_run_test {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int kMillions = 1;  // A sanitizer's own memory grows with what it has seen.
#else
constexpr int kMillions = 4;
#endif

std::int64_t resident_bytes() {
  std::int64_t all = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> all >> resident;
  return resident * ::sysconf(_SC_PAGESIZE);
}

TEST(SummaryWriterLongRun, OfMillionsOfScalarsTakesConstantMemoryAndLosesNone) {
  const TemporaryDirectory directory;
  SummaryWriter writer(directory / "run", {.queue_bytes = std::size_t{4} << 20});
  std::int64_t after_first = 0;
  for (int million = 0; million < kMillions; ++million) {
    for (int i = 0; i < 1'000'000; ++i) {
      const int step = million * 1'000'000 + i;
      writer.add_scalar("Loss/train", step * 0.5, step);
    }
    writer.flush();
    if (million == 0) after_first = resident_bytes();
  }
  // A few times the queue, which the first million may not have filled; the points take 50 MB a million.
  EXPECT_LT(resident_bytes() - after_first, std::int64_t{16} << 20)
      << "bytes more than after the first million";
  writer.close();
  const FileCheck check = check_events_file(writer.path());
  EXPECT_EQ(check.end, ReadEnd::kEnd);
  EXPECT_EQ(check.records, kMillions * 1'000'000u + 2u) << "points, version and the session's start";
}

}  // namespace sweep::tbwriter::long_run_test
