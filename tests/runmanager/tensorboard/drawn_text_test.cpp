// Text in pictures, found again in the PNG that another decoder reads.

#include <fmt/format.h>
#include <spng.h>
#include <regex>

#include "runmanager/tensorboard/captioned_grid.h"
#include "runmanager/tensorboard/predictions.h"
#include "runmanager/tensorboard/view_hint.h"
#include "tbwriter/canvas.h"
#include "tests/support/test.h"

namespace sweep::drawn_text_test {

// The brightness of every pixel.
struct Picture {
  std::size_t width = 0, height = 0;
  std::vector<std::uint8_t> gray;

  explicit Picture(const tbwriter::EncodedImage& image)
      : width(static_cast<std::size_t>(image.width)), height(static_cast<std::size_t>(image.height)) {
    const std::unique_ptr<spng_ctx, decltype(&spng_ctx_free)> context(spng_ctx_new(0), spng_ctx_free);
    spng_set_png_buffer(context.get(), image.bytes.data(), image.bytes.size());
    std::vector<std::uint8_t> rgb(width * height * 3);
    EXPECT_EQ(spng_decode_image(context.get(), rgb.data(), rgb.size(), SPNG_FMT_RGB8, 0), 0);
    for (std::size_t i = 0; i < rgb.size(); i += 3) gray.push_back(rgb[i]);
  }

  // Whether all pixels of `text` have one brightness somewhere, and the other pixels of its letters another.
  bool shows(std::string_view text, bool upwards = false) const {
    auto across = static_cast<std::size_t>(tbwriter::text_width(text));
    std::size_t down = tbwriter::kLetterHeight;
    tbwriter::Canvas canvas({tbwriter::kLetterHeight, tbwriter::text_width(text)});
    canvas.write(text, 0, 0, {1});
    std::vector<bool> ink(canvas.pixels.begin(), canvas.pixels.end());
    if (upwards) {
      std::vector<bool> turned(ink.size());
      for (std::size_t y = 0; y < down; ++y) {
        for (std::size_t x = 0; x < across; ++x) turned[(across - 1 - x) * down + y] = ink[y * across + x];
      }
      ink = turned;
      std::swap(across, down);
    }
    std::vector<std::size_t> letters, others;  // pixels, counted from the corner of the text
    for (std::size_t i = 0; i < ink.size(); ++i)
      (ink[i] ? letters : others).push_back(i / across * width + i % across);
    for (std::size_t top = 0; top + down <= height; ++top) {
      for (std::size_t left = 0; left + across <= width; ++left) {
        const std::uint8_t* corner = gray.data() + top * width + left;
        if (corner[letters[0]] != corner[others[0]] && are_equal(corner, letters) &&
            are_equal(corner, others))
          return true;
      }
    }
    return false;
  }

 private:
  static bool are_equal(const std::uint8_t* corner, const std::vector<std::size_t>& pixels) {
    for (const std::size_t pixel : pixels) {
      if (corner[pixel] != corner[pixels[0]]) return false;
    }
    return true;
  }
};

TEST(DrawnText, NamesRowsAndColumnsOfTheConfusionMatrixAndCounts) {
  const std::vector<std::string> names = {"Shirt", "T-shirt/top", "a very long name of a class",
                                          "Mu\u0308nzen", "\u732b \u0416"};
  const Picture picture(draw_confusion_matrix(
      std::vector<std::int64_t>{12, 0, 3, 0, 0, 4, 507, 0, 0, 0, 0, 8, 9, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 2},
      names));
  for (const char* name :
       {"Shirt", "T-shirt/top", "a very long na..", "Mu\u0308nzen", "M\u00fcnzen", "\u732b \u0416"}) {
    const bool is_there = std::string_view(name) != "M\u00fcnzen";
    EXPECT_EQ(picture.shows(name), is_there) << name;
    EXPECT_EQ(picture.shows(name, true), is_there) << name;
  }
  EXPECT_TRUE(picture.shows("predicted"));
  EXPECT_TRUE(picture.shows("label", true));
  for (const char* count : {"12", "3", "4", "507", "8", "9"}) EXPECT_TRUE(picture.shows(count)) << count;
  EXPECT_FALSE(picture.shows("508")) << "the check would find anything";
  EXPECT_FALSE(picture.shows("\uFFFD"));
}

TEST(DrawnText, LeavesManyClassesWithoutLetters) {
  const std::vector<std::string> names(1000, "class");
  const auto image = draw_confusion_matrix(std::vector<std::int64_t>(1000 * 1000, 7), names);
  EXPECT_LT(image.width, 6000);
}

TEST(DrawnText, CaptionsPicturesInOneLineOrTwo) {
  const std::vector<std::uint8_t> pixels(3 * 28 * 28, 200);
  const std::vector<std::string> captions = {"Shirt \u2192\nCoat 99 %", "Ankle boot \u2192\nSneaker 100 %",
                                             "caf\xC3\xA9"};
  const Picture picture(
      draw_captioned_grid(pixels, {.count = 3, .channels = 1, .height = 28, .width = 28}, captions, 2));
  const auto longest = static_cast<std::size_t>(tbwriter::text_width("Sneaker 100 %"));
  EXPECT_GT(longest, 3u * 28);
  EXPECT_EQ(picture.width, 2 * (longest + 8 + 4) + 4) << "captions do not touch";
  EXPECT_EQ(picture.height, 2u * (3 * 28 + 2 * 17 + 2 * 4) + 4);
  for (const char* line : {"Shirt \u2192", "Coat 99 %", "Ankle boot \u2192", "Sneaker 100 %", "caf\u00e9"})
    EXPECT_TRUE(picture.shows(line)) << line;
  EXPECT_FALSE(picture.shows("Shirt - Coat 99 %"));
}

TEST(DrawnText, KeepsTheColoursOfPictures) {
  std::vector<std::uint8_t> pixels(3 * 120 * 4, 7);
  const auto image = draw_captioned_grid(pixels, {.count = 1, .channels = 3, .height = 4, .width = 120},
                                         std::vector<std::string>{"x"}, 4);
  EXPECT_EQ(image.channels, 3);
  EXPECT_EQ(image.width, 120 + 8) << "wide enough: not enlarged";
}

std::vector<RunRecord> runs_of(const std::vector<std::string>& names,
                               RunStatus status = RunStatus::kCompleted) {
  std::vector<RunRecord> runs;
  for (const std::string& name : names) {
    runs.emplace_back();
    runs.back().name = name;
    runs.back().status = status;
  }
  return runs;
}

std::vector<std::string> grid(int lrs, int batches, int repeats) {
  std::vector<std::string> names;
  for (int lr = 1; lr <= lrs; ++lr) {
    for (int batch = 1; batch <= batches; ++batch) {
      for (int repeat = 0; repeat < repeats; ++repeat) {
        names.push_back(fmt::format("lr=0.{},batch_size={}{}", lr, 10 * batch,
                                    repeats > 1 ? fmt::format(",repeat={}", repeat) : ""));
      }
    }
  }
  return names;
}

std::ptrdiff_t matches(const std::vector<std::string>& names, const std::string& filter) {
  const std::regex regex(filter);
  return std::count_if(names.begin(), names.end(),
                       [&](const std::string& name) { return std::regex_search(name, regex); });
}

TEST(RunFilter, LeavesAsManyRunsAsTensorBoardTicks) {
  EXPECT_EQ(run_filter(grid(5, 8, 1)), "") << "40 runs need none";
  EXPECT_EQ(run_filter(grid(2, 21, 1)), "lr=0.1");
  for (const auto& names :
       {grid(3, 14, 1), grid(40, 1, 3), grid(12, 12, 1), grid(9, 50, 3), grid(45, 1, 1)}) {
    const std::string filter = run_filter(names);
    EXPECT_GE(matches(names, filter), 1) << filter;
    EXPECT_LE(matches(names, filter), 40) << filter;
  }
  EXPECT_EQ(run_filter(grid(40, 1, 3)), "repeat=0");
}

TEST(RunFilter, DoesNotTakeTheBeginningOfAValueForTheValue) {
  std::vector<std::string> names;
  for (int i = 0; i < 30; ++i) names.push_back(fmt::format("lr=0.1,seed={}", i));
  for (int i = 0; i < 30; ++i) names.push_back(fmt::format("lr=0.15,seed={}", i));
  EXPECT_EQ(matches(names, run_filter(names)), 30);
}

TEST(ViewHint, NamesTheSweepsDirectory) {
  EXPECT_EQ(view_hint("runs/s", runs_of(grid(2, 2, 1)), {}), "To look at it: tensorboard --logdir runs/s\n");
  EXPECT_EQ(view_hint("-d/s", runs_of(grid(2, 2, 1)), {}), "To look at it: tensorboard --logdir ./-d/s\n");
}

TEST(ViewHint, TellsWhatToTypeWhereAPageWouldBeEmpty) {
  std::vector<RunRecord> runs = runs_of(grid(2, 21, 1));
  EXPECT_THAT(view_hint("runs/s", runs, {}),
              AllOf(HasSubstr("--logdir runs/s\n"), HasSubstr("42"), HasSubstr("type lr=0.1 for")));
  runs[0].status = runs[1].status = RunStatus::kSkipped;
  EXPECT_THAT(view_hint("runs/s", runs, {}), Not(HasSubstr("type"))) << "skipped runs have no events";
}

TEST(ViewHint, BeginsWithTheMeansWhereTheyAreFewEnough) {
  const std::string few = view_hint("runs/s", runs_of(grid(2, 3, 3)), grid(2, 3, 1));
  EXPECT_THAT(few, AllOf(StartsWith("To look at it: tensorboard --logdir runs/s\n"),
                         HasSubstr("--logdir runs/s.mean\n"), Not(HasSubstr("type"))));
  const std::string many = view_hint("runs/s", runs_of(grid(5, 8, 3)), grid(5, 8, 1));
  EXPECT_THAT(many,
              AllOf(StartsWith("To look at the means of the repeats: tensorboard --logdir runs/s.mean\n"),
                    HasSubstr("--logdir runs/s\n"), HasSubstr("type repeat=0 for")));
}

}  // namespace sweep::drawn_text_test
