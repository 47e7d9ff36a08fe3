// Labels in pictures with boxes, read back from the PNG by another decoder.
#include <gtest/gtest.h>
#include <spng.h>

#include <limits>
#include <string>
#include <vector>

#include "tbwriter/image.h"

namespace sweep::tbwriter {
namespace {

// A picture as lines of text: "." black, "R" red, "B" blue, "w" white.
std::vector<std::string> drawn(ImageSize size, std::vector<Box> boxes, std::uint8_t ground = 0) {
  const std::vector<std::uint8_t> pixels(static_cast<std::size_t>(size.height * size.width), ground);
  const EncodedImage image = encode_image_with_boxes(pixels, size, boxes);
  spng_ctx* context = spng_ctx_new(0);
  spng_set_png_buffer(context, image.bytes.data(), image.bytes.size());
  std::vector<std::uint8_t> rgb(static_cast<std::size_t>(size.height * size.width * 3));
  EXPECT_EQ(spng_decode_image(context, rgb.data(), rgb.size(), SPNG_FMT_RGB8, 0), 0);
  spng_ctx_free(context);
  std::vector<std::string> lines;
  for (std::int64_t y = 0; y < size.height; ++y) {
    lines.emplace_back();
    for (std::int64_t x = 0; x < size.width; ++x) {
      const std::uint8_t* p = &rgb[static_cast<std::size_t>((y * size.width + x) * 3)];
      lines.back() += p[0] != 0 && p[1] != 0 ? 'w' : p[0] != 0 ? 'R' : p[2] != 0 ? 'B' : '.';
    }
  }
  return lines;
}

TEST(BoxLabel, StandsInBlackOnTheBoxesColourInItsLowerLeftCorner) {
  const Box box{.left = 1, .top = 0, .right = 11, .bottom = 19, .label = "H"};
  const std::vector<std::string> lines = drawn({.height = 20, .width = 13}, {box}, 255);
  EXPECT_EQ(lines[0], "wRRRRRRRRRRRw");
  EXPECT_EQ(lines[1], "wRwwwwwwwwwRw");
  EXPECT_EQ(lines[6], "wRRRRRRRRRwRw");
  for (std::size_t y = 7; y < 17; ++y) EXPECT_EQ(lines[y], y == 11 ? "wRR......RwRw" : "wRR.RRRR.RwRw") << y;
  EXPECT_EQ(lines[17], "wRRRRRRRRRwRw");
  EXPECT_EQ(lines[19], "wRRRRRRRRRRRw");
}

TEST(BoxLabel, IsWhiteOnDarkColours) {
  const Box box{.left = 0, .top = 0, .right = 12, .bottom = 19, .color = {0, 0, 255}, .label = "-"};
  EXPECT_EQ(drawn({.height = 20, .width = 13}, {box})[12], "BBBwwwwBB...B");
}

TEST(BoxLabel, HasLettersOfAnyScript) {
  const auto label = [](const char* text) {
    const Box box{.left = 0, .top = 0, .right = 39, .bottom = 39, .label = text};
    return drawn({.height = 40, .width = 40}, {box});
  };
  const std::vector<std::string> unknown = label("\xFF");
  for (const char* text : {"\u00fc", "\u03bb", "\u0416", "\u732b"}) EXPECT_NE(label(text), unknown) << text;
  EXPECT_NE(label("\u00fc"), label("u"));
  EXPECT_EQ(label("u\u0308")[33], label("u")[33]) << "a mark is drawn on the letter before it";
  EXPECT_NE(label("u\u0308")[25], label("u")[25]);
  EXPECT_EQ(label("\U0001F600"), unknown);
}

TEST(BoxLabel, IsCutOffAtThePicturesEdges) {
  const std::int64_t far = std::numeric_limits<std::int64_t>::max();
  const std::vector<Box> boxes{
      {.left = -4, .top = -9, .right = 20, .bottom = 4, .label = "WWWWWWWW"},
      {.left = -far, .top = -far, .right = far, .bottom = far, .label = "out of sight"},
      {.left = far, .top = far, .right = far, .bottom = far, .label = "out of sight"}};
  const std::vector<std::string> lines = drawn({.height = 8, .width = 8}, boxes);
  EXPECT_NE(lines[1].find('.'), std::string::npos) << "letters are on the picture";
  EXPECT_EQ(lines[5], "........") << "nothing is below the first box";
}

TEST(BoxLabel, EmptyLeavesTheOutlineAlone) {
  EXPECT_EQ(drawn({.height = 3, .width = 4}, {{.right = 3, .bottom = 2}}),
            (std::vector<std::string>{"RRRR", "R..R", "RRRR"}));
}

}  // namespace
}  // namespace sweep::tbwriter
