#include "runmanager/report/run_pictures.h"

#include "tbwriter/summary_writer.h"
#include "tests/support/test.h"

namespace sweep::run_pictures_test {

TEST(RunPictures, AreTheNewestOfEachKindWithTheirTexts) {
  const test::TemporaryDirectory directory;
  const tbwriter::EncodedImage first{1, 2, 1, "\x89PNG\r\n\x1a\n first"},
      second{3, 4, 1, "\x89PNG\r\n\x1a\n second"};
  {
    tbwriter::SummaryWriter writer(directory.path());
    writer.add_image("predictions/confusion_matrix", first, 1);
    writer.add_text("predictions/confusion_counts", "| a |", 1);
    writer.add_image("images", first, 0);
    writer.add_image("other", first, 0);
    writer.add_image("predictions/confusion_matrix", second, 2);
    writer.add_text("predictions/confusion_counts", "| b |", 2);
    writer.close();
  }
  const std::vector<RunPicture> pictures = run_pictures(directory.path());
  ASSERT_EQ(pictures.size(), 2u);
  EXPECT_EQ(pictures[0].tag, "images");
  EXPECT_EQ(pictures[1].tag, "predictions/confusion_matrix");
  EXPECT_EQ(pictures[1].step, 2);
  EXPECT_EQ(pictures[1].png, second.bytes);
  EXPECT_EQ(pictures[1].width, static_cast<std::int64_t>(second.width));
  EXPECT_EQ(pictures[1].height, static_cast<std::int64_t>(second.height));
  EXPECT_EQ(pictures[1].text, "| b |");
}

TEST(RunPictures, AreNotMadeOfOtherBytes) {
  const test::TemporaryDirectory directory;
  {
    tbwriter::SummaryWriter writer(directory.path());
    writer.add_image("images", tbwriter::EncodedImage{1, 1, 1, "<svg onload=alert(1)>"}, 0);
    writer.close();
  }
  std::ofstream(directory.path() / "events.out.tfevents.9999999999.damaged") << "no records at all";
  EXPECT_TRUE(run_pictures(directory.path()).empty());
  EXPECT_TRUE(run_pictures(directory.path() / "missing").empty());
}

}  // namespace sweep::run_pictures_test
