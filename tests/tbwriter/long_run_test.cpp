// A run of ten million points.
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "tbwriter/event_file_name.h"
#include "tbwriter/event_reader.h"
#include "tbwriter/summary_writer.h"
#include "tests/support/event_files.h"

namespace sweep::tbwriter {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int kMillions = 1;  // A sanitizer's own memory grows with what it has seen.
#else
constexpr int kMillions = 10;
#endif

std::int64_t resident_bytes() {
  std::int64_t all = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> all >> resident;
  return resident * ::sysconf(_SC_PAGESIZE);
}

TEST(SummaryWriterLongRun, OfTenMillionScalarsTakesConstantMemoryAndLosesNone) {
  const TemporaryDirectory directory;
  WriterOptions options;
  options.queue_bytes = std::size_t{4} << 20;
  options.max_file_bytes = std::size_t{32} << 20;
  SummaryWriter writer(directory / "run", options);
  std::uint64_t records = 0;
  std::int64_t after_first = 0;
  // Files that are done with are counted and removed, so that the test needs little room.
  const auto count_files = [&](bool newest_too) {
    for (const std::string& name : list_event_files(directory / "run")) {
      const std::filesystem::path file = directory / "run" / name;
      if (!newest_too && file == writer.path()) continue;
      const FileCheck check = check_events_file(file);
      EXPECT_EQ(check.end, ReadEnd::kEnd) << file;
      records += check.records;
      records -= 1;  // each file's version
      std::filesystem::remove(file);
    }
  };
  for (int million = 0; million < kMillions; ++million) {
    for (int i = 0; i < 1'000'000; ++i) {
      const int step = million * 1'000'000 + i;
      writer.add_scalar("Loss/train", step * 0.5, step);
    }
    writer.flush();
    if (million == 0) after_first = resident_bytes();
    count_files(false);
  }
  // A few times the queue, which the first million may not have filled; the points take some hundred MB.
  EXPECT_LT(resident_bytes() - after_first, std::int64_t{16} << 20)
      << "bytes more than after the first million";
  writer.close();
  count_files(true);
  EXPECT_EQ(records, kMillions * 1'000'000u + 1u) << "points and the session's start";
}

}  // namespace
}  // namespace sweep::tbwriter
