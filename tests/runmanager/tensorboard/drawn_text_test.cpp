// Text in pictures, found again in the PNG that another decoder reads.
#include <gtest/gtest.h>
#include <spng.h>

#include <memory>
#include <vector>

#include "runmanager/tensorboard/captioned_grid.h"
#include "runmanager/tensorboard/predictions.h"

namespace sweep {
namespace {

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
  bool shows(std::string_view text, std::size_t scale, bool upwards = false) const {
    std::size_t across = text_width(text) * scale, down = tbwriter::kLetterHeight * scale;
    std::vector<bool> ink(across * down);
    draw_text(text, scale, [&](std::size_t x, std::size_t y) { ink[y * across + x] = true; });
    if (upwards) {
      std::vector<bool> turned(ink.size());
      for (std::size_t y = 0; y < down; ++y) {
        for (std::size_t x = 0; x < across; ++x) turned[(across - 1 - x) * down + y] = ink[y * across + x];
      }
      ink = turned;
      std::swap(across, down);
    }
    for (std::size_t top = 0; top + down <= height; ++top) {
      for (std::size_t left = 0; left + across <= width; ++left) {
        if (is_at(ink, across, left, top)) return true;
      }
    }
    return false;
  }

 private:
  bool is_at(const std::vector<bool>& ink, std::size_t across, std::size_t left, std::size_t top) const {
    int on = -1, off = -1;
    for (std::size_t i = 0; i < ink.size(); ++i) {
      const int value = gray[(top + i / across) * width + left + i % across];
      int& expected = ink[i] ? on : off;
      if (expected == -1) expected = value;
      if (value != expected) return false;
    }
    return on != off;
  }
};

TEST(DrawnText, NamesRowsAndColumnsOfTheConfusionMatrixAndCounts) {
  const std::vector<std::string> names = {"Shirt", "T-shirt/top", "a very long name of a class"};
  const Picture picture(
      draw_confusion_matrix(std::vector<std::int64_t>{12, 0, 3, 4, 507, 0, 0, 8, 9}, names));
  for (const char* name : {"Shirt", "T-shirt/top", "a very long na.."}) {
    EXPECT_TRUE(picture.shows(name, 2)) << name;
    EXPECT_TRUE(picture.shows(name, 2, true)) << name;
  }
  EXPECT_TRUE(picture.shows("predicted", 2));
  EXPECT_TRUE(picture.shows("label", 2, true));
  for (const char* count : {"12", "3", "4", "507", "8", "9"}) EXPECT_TRUE(picture.shows(count, 2)) << count;
  EXPECT_FALSE(picture.shows("508", 2)) << "the check would find anything";
}

TEST(DrawnText, CaptionsPicturesInOneLineOrTwo) {
  const std::vector<std::uint8_t> pixels(3 * 28 * 28, 200);
  const std::vector<std::string> captions = {"Shirt \u2192\nCoat 99 %", "Ankle boot \u2192\nSneaker 100 %",
                                             "caf\xC3\xA9"};
  const Picture picture(
      draw_captioned_grid(pixels, {.count = 3, .channels = 1, .height = 28, .width = 28}, captions, 2));
  EXPECT_EQ(picture.width, 2u * (4 * 28 + 4) + 4);
  EXPECT_EQ(picture.height, 2u * (4 * 28 + 2 * 9 + 2 * 4) + 4);
  for (const char* line : {"Shirt \u2192 Coat 99 %", "Ankle boot \u2192", "Sneaker 100 %", "caf"})
    EXPECT_TRUE(picture.shows(line, 1)) << line;
  EXPECT_FALSE(picture.shows("Shirt - Coat 99 %", 1));
}

TEST(DrawnText, KeepsTheColoursOfPictures) {
  std::vector<std::uint8_t> pixels(3 * 120 * 4, 7);
  const auto image = draw_captioned_grid(pixels, {.count = 1, .channels = 3, .height = 4, .width = 120},
                                         std::vector<std::string>{"x"}, 4);
  EXPECT_EQ(image.channels, 3);
  EXPECT_EQ(image.width, 120 + 8) << "wide enough: not enlarged";
}

}  // namespace
}  // namespace sweep
