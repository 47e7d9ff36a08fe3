#include "tbwriter/event_file_name.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <limits>
#include <string>

#include "core/base/error.h"
#include "tests/support/event_files.h"

namespace sweep::tbwriter {
namespace {

TEST(EventFileName, PadsSecondsAndCounterSoThatTextOrderIsTimeOrder) {
  EXPECT_EQ(event_file_name({1700000000, "host", 12}, 3), "events.out.tfevents.1700000000.host.12.000003");
  EXPECT_EQ(event_file_name({99, "host", 12}, 0), "events.out.tfevents.0000000099.host.12.000000");
  EXPECT_LT(event_file_name({1700000000, "h", 1}, 9), event_file_name({1700000000, "h", 1}, 10));
}

TEST(NextSession, IsLaterThanEveryFileEvenIfTheClockWentBack) {
  const std::vector<std::string> existing = {"events.out.tfevents.1700000000.a.1.0",
                                             "events.out.tfevents.1700000500.zzz.99999.7.v2"};
  const SessionName session = next_session(existing, 1600000000.0);
  EXPECT_EQ(session.seconds, 1700000501);
  for (const std::string& name : existing) EXPECT_GT(event_file_name(session, 0), name);
}

TEST(NextSession, TakesTheClockWhereThatIsLater) {
  EXPECT_EQ(next_session({"events.out.tfevents.1600000000.a"}, 1700000000.9).seconds, 1700000000);
  EXPECT_EQ(next_session({}, 1700000000.0).process, ::getpid());
}

TEST(NextSession, TakesAnyClock) {
  constexpr std::int64_t kLast = 9'999'999'999;
  EXPECT_EQ(next_session({}, std::numeric_limits<double>::quiet_NaN()).seconds, 0);
  EXPECT_EQ(next_session({}, -1e300).seconds, 0);
  EXPECT_EQ(next_session({}, 1e300).seconds, kLast);
  EXPECT_EQ(next_session({}, std::numeric_limits<double>::infinity()).seconds, kLast);
}

TEST(NextSession, RefusesADirectoryInWhichNoLaterNameIsPossible) {
  for (const char* name :
       {"events.out.tfevents.9999999999.a", "events.out.tfevents.x", "events.out.tfevents.18000000000.a"}) {
    try {
      next_session({name}, 1700000000);
      FAIL() << name;
    } catch (const IoError& error) {
      EXPECT_NE(std::string(error.what()).find(name), std::string::npos);
    }
  }
}

TEST(ListEventFiles, SeesWhatTensorBoardSees) {
  const TemporaryDirectory directory;
  for (const char* name : {"b.tfevents.1", "a.tfevents.2", "log.txt"}) spill(directory / name, "");
  EXPECT_EQ(list_event_files(directory.path()), (std::vector<std::string>{"a.tfevents.2", "b.tfevents.1"}));
  EXPECT_TRUE(list_event_files(directory / "missing").empty());
}

TEST(EventFileName, KnowsItsOwnNames) {
  EXPECT_TRUE(is_event_file_name(event_file_name({1700000000, "a.host-1", 12}, 3)));
  EXPECT_TRUE(is_event_file_name(event_file_name({99, "7", 12}, 1234567)));
  for (const char* name :
       {"mynotes.tfevents.txt", "events.out.tfevents.", "events.out.tfevents.1700000000.host.12.3",
        "events.out.tfevents.1700000000.host.12.v2", "events.out.tfevents.170000000.host.12.000000",
        "events.out.tfevents.1700000000.12.000000", "events.out.tfevents.1700000000..12.000000.txt"})
    EXPECT_FALSE(is_event_file_name(name)) << name;
}

}  // namespace
}  // namespace sweep::tbwriter
