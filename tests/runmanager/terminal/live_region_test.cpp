#include "runmanager/terminal/live_region.h"

#include "tests/support/screen.h"
#include "tests/support/test.h"

namespace sweep::live_region_test {

using testing::Screen;

TEST(LiveRegion, StaysBelowWhatIsWritten) {
  Screen screen(40);
  {
    LiveRegion region(screen.terminal());
    region.draw({"a", "b"});
    region.draw({"c", "d", "e"});
    EXPECT_THAT(screen.lines(), ElementsAre("c", "d", "e"));
    region.write_above("first\n");
    region.draw({"f"});
    EXPECT_THAT(screen.lines(), ElementsAre("first", "f"));
    region.draw({"g", "h"}, "second\nthird\n");
    EXPECT_THAT(screen.lines(), ElementsAre("first", "second", "third", "g", "h"));
    region.draw({"shorter"});
    EXPECT_THAT(screen.lines(), ElementsAre("first", "second", "third", "shorter"));
  }
  EXPECT_THAT(screen.lines(), ElementsAre("first", "second", "third"));
  EXPECT_TRUE(screen.unknown.empty());
  EXPECT_EQ(screen.unfinished_updates, 0u);
}

TEST(LiveRegion, IsDrawnByOneWrite) {
  Screen screen(40);
  LiveRegion region(screen.terminal());
  region.draw({"a", "b"});
  region.draw({"a", "b"});
  EXPECT_EQ(screen.writes, 1u) << "nothing has changed";
  region.draw({"c"}, "above\n");
  EXPECT_EQ(screen.writes, 2u);
}

TEST(LiveRegion, LeavesNothingBehindWhenTheTerminalChangesItsWidth) {
  for (const int before : {200, 80, 60}) {
    for (const int after : {200, 80, 60, 33, 20}) {
      Screen screen(before, 50);
      LiveRegion region(screen.terminal());
      region.draw({std::string(190, 'a'), "b", std::string(190, 'c')}, "stays\n");
      screen.resize(after, 50);
      region.draw({"d", std::string(190, 'e')});
      EXPECT_THAT(screen.lines(),
                  ElementsAre("stays", "d",
                              std::string(std::min(190, after - 2), 'e') + (after - 1 < 190 ? "…" : "")))
          << before << " to " << after;
    }
  }
}

// Such terminals cut what was there, so that going up further would erase what has to stay.
TEST(LiveRegion, ErasesNothingElseOnATerminalThatDoesNotWrapAnew) {
  std::string sent;
  int width = 80;
  Terminal terminal{.interactive = true, .reflows = false, .width = [&] { return width; }};
  terminal.write = [&](std::string_view text) { sent = text; };
  LiveRegion region(terminal);
  region.draw({std::string(70, 'a'), "b"});
  width = 20;
  region.draw({"c", "d"});
  EXPECT_NE(sent.find("\x1b[1A"), std::string::npos) << sent;
}

}  // namespace sweep::live_region_test
