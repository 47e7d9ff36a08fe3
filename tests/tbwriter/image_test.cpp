// Pictures and videos, read back from the PNG by another decoder.
#include "tbwriter/image.h"

#include <spng.h>

#include "tbwriter/error.h"
#include "tests/support/data_files.h"
#include "tests/support/event_files.h"

namespace sweep::tbwriter::image_test {

struct Decoded {
  std::uint32_t width, height;
  int color_type;
  std::vector<std::uint8_t> pixels;
};

Decoded decode(const std::string& png, spng_format format = SPNG_FMT_PNG) {
  const std::unique_ptr<spng_ctx, decltype(&spng_ctx_free)> context(spng_ctx_new(0), spng_ctx_free);
  EXPECT_EQ(spng_set_crc_action(context.get(), SPNG_CRC_USE, SPNG_CRC_USE), 0) << "see frames_of()";
  EXPECT_EQ(spng_set_png_buffer(context.get(), png.data(), png.size()), 0);
  spng_ihdr header{};
  EXPECT_EQ(spng_get_ihdr(context.get(), &header), 0);
  std::size_t size = 0;
  EXPECT_EQ(spng_decoded_image_size(context.get(), format, &size), 0);
  Decoded decoded{header.width, header.height, header.color_type, std::vector<std::uint8_t>(size)};
  EXPECT_EQ(spng_decode_image(context.get(), decoded.pixels.data(), size, format, 0), 0);
  return decoded;
}

std::vector<std::uint8_t> counting(std::size_t n) {
  std::vector<std::uint8_t> values(n);
  for (std::size_t i = 0; i < n; ++i) values[i] = static_cast<std::uint8_t>(i * 37 + i / 256);
  return values;
}

std::vector<float> parts(const std::vector<std::uint8_t>& bytes) {
  std::vector<float> values(bytes.size());
  std::ranges::transform(bytes, values.begin(),
                         [](std::uint8_t byte) { return static_cast<float>(byte) / 255; });
  return values;
}

TEST(EncodeImage, GivesBackTheSamePixels) {
  const int color_types[] = {SPNG_COLOR_TYPE_GRAYSCALE, SPNG_COLOR_TYPE_GRAYSCALE_ALPHA,
                             SPNG_COLOR_TYPE_TRUECOLOR, SPNG_COLOR_TYPE_TRUECOLOR_ALPHA};
  for (std::int64_t channels = 1; channels <= 4; ++channels) {
    for (const auto& [height, width] : {std::pair<int, int>{1, 1}, {3, 5}, {64, 1}, {200, 301}}) {
      const auto pixels = counting(static_cast<std::size_t>(height * width * channels));
      const EncodedImage image = encode_image(pixels, {height, width, channels});
      const Decoded decoded = decode(image.bytes);
      EXPECT_EQ(decoded.pixels, pixels);
      EXPECT_EQ(decoded.width, width);
      EXPECT_EQ(decoded.height, height);
      EXPECT_EQ(decoded.color_type, color_types[channels - 1]);
      EXPECT_EQ(image.channels, channels);
    }
  }
}

TEST(EncodeDrawing, GivesEachPixelTheColourOfItsNumber) {
  for (const std::size_t colors : {1u, 2u, 17u, 256u}) {
    std::vector<Color> palette;
    for (std::size_t i = 0; i < colors; ++i) {
      const auto shade = static_cast<std::uint8_t>(i);
      palette.push_back({shade, static_cast<std::uint8_t>(255 - shade), 77});
    }
    std::vector<std::uint8_t> pixels = counting(35 * 51), expected;
    for (std::uint8_t& pixel : pixels) pixel = static_cast<std::uint8_t>(pixel % colors);
    for (const std::uint8_t pixel : pixels)
      expected.insert(expected.end(), palette[pixel].begin(), palette[pixel].end());
    const EncodedImage image = encode_drawing(pixels, {35, 51}, palette);
    const Decoded decoded = decode(image.bytes, SPNG_FMT_RGB8);
    EXPECT_EQ(decoded.pixels, expected);
    EXPECT_EQ(decoded.color_type, SPNG_COLOR_TYPE_INDEXED);
    EXPECT_EQ(image.channels, 3) << "TensorBoard knows no palettes";
  }
}

TEST(EncodeDrawing, RefusesWhatIsNotOfThePalette) {
  const std::vector<std::uint8_t> pixels = {0, 1, 2, 0};
  const std::vector<Color> three(3);
  EXPECT_NO_THROW(encode_drawing(pixels, {2, 2}, three));
  EXPECT_THROW(encode_drawing(pixels, {2, 2}, std::span(three).first(2)), UsageError);
  EXPECT_THROW(encode_drawing(pixels, {2, 2}, {}), UsageError);
  EXPECT_THROW(encode_drawing(pixels, {2, 2}, std::vector<Color>(257)), UsageError);
  EXPECT_THROW(encode_drawing(pixels, {2, 3}, three), UsageError);
  EXPECT_THROW(encode_drawing(pixels, {0, 2}, three), UsageError);
  EXPECT_THROW(encode_drawing(pixels, {2, 2, 3}, three), UsageError);
}

TEST(EncodeImageGrid, PlacesPicturesAsMakeGridDoes) {
  // Three pictures of 1x2 in two columns, one pixel of padding, 7 as background.
  const std::vector<std::uint8_t> pixels{1, 2, 3, 4, 5, 6};
  const EncodedImage image =
      encode_image_grid(pixels, {3, 1, 1, 2}, {.columns = 2, .padding = 1, .background = 7});
  const Decoded decoded = decode(image.bytes);
  EXPECT_EQ(decoded.width, 7u);
  EXPECT_EQ(decoded.height, 5u);
  EXPECT_EQ(decoded.pixels, (std::vector<std::uint8_t>{7, 7, 7, 7, 7, 7, 7,  //
                                                       7, 1, 2, 7, 3, 4, 7,  //
                                                       7, 7, 7, 7, 7, 7, 7,  //
                                                       7, 5, 6, 7, 7, 7, 7,  //
                                                       7, 7, 7, 7, 7, 7, 7}));
}

TEST(EncodeImageGrid, InterleavesTheChannels) {
  const std::vector<std::uint8_t> planes{10, 11, 20, 21, 30, 31};
  const Decoded decoded = decode(encode_image_grid(planes, {1, 3, 1, 2}, {.padding = 0}).bytes);
  EXPECT_EQ(decoded.pixels, (std::vector<std::uint8_t>{10, 20, 30, 11, 21, 31}));
}

TEST(EncodeImageGrid, Of64SmallPicturesIs242Wide) {
  const EncodedImage image = encode_image_grid(counting(64 * 28 * 28), {64, 1, 28, 28});
  EXPECT_EQ(image.width, 242);
  EXPECT_EQ(image.height, 242);
}

TEST(EncodeImage, TurnsFloatsBackIntoTheBytesTheyCameFromClampsOthersAndTakesNanAsBlack) {
  std::vector<std::uint8_t> bytes(256);
  for (std::size_t k = 0; k < bytes.size(); ++k) bytes[k] = static_cast<std::uint8_t>(k);
  std::vector<float> values = parts(bytes);
  const float inf = std::numeric_limits<float>::infinity();
  values.insert(values.end(), {-1, 2, inf, -inf, std::numeric_limits<float>::quiet_NaN(), 0.5f});
  bytes.insert(bytes.end(), {0, 255, 255, 0, 0, 128});
  EXPECT_EQ(decode(encode_image(values, {1, 262}).bytes).pixels, bytes);
  EXPECT_EQ(decode(encode_image_grid(values, {1, 1, 1, 262}, {.padding = 0}).bytes).pixels, bytes);
}

TEST(EncodeImage, RefusesSizesThatDoNotFit) {
  const std::vector<std::uint8_t> pixels(12);
  EXPECT_THROW(encode_image(pixels, {3, 3, 1}), UsageError);
  EXPECT_THROW(encode_image(pixels, {0, 3, 1}), UsageError);
  EXPECT_THROW(encode_image(pixels, {-3, -4, 1}), UsageError);
  EXPECT_THROW(encode_image(pixels, {1, 2, 6}), UsageError);
  EXPECT_THROW(encode_image(parts(pixels), {2, 2}), UsageError);
  EXPECT_THROW(encode_image(pixels, {std::int64_t{1} << 62, 4, 3}), UsageError);
  EXPECT_THROW(encode_image_grid(pixels, {3, 2, 1, 2}), UsageError);
  EXPECT_THROW(encode_image_grid(pixels, {12, 1, 1, 1}, {.columns = 0}), UsageError);
  EXPECT_THROW(encode_image_grid(pixels, {12, 1, 1, 1}, {.padding = -1}), UsageError);
}

TEST(EncodeImage, TakesPlanesAndFloats) {
  const auto planes = counting(3 * 4 * 5);
  std::vector<std::uint8_t> mixed;
  for (std::size_t i = 0; i < 20; ++i) mixed.insert(mixed.end(), {planes[i], planes[20 + i], planes[40 + i]});
  const ImageSize hwc = {.height = 4, .width = 5, .channels = 3};
  ImageSize chw = hwc;
  chw.order = PixelOrder::kChw;
  const std::string wanted = encode_image(mixed, hwc).bytes;
  EXPECT_EQ(encode_image(planes, chw).bytes, wanted);
  EXPECT_EQ(encode_image(parts(planes), chw).bytes, wanted);
  EXPECT_EQ(encode_image(parts(mixed), hwc).bytes, wanted);
  const Box boxes[] = {{.left = 1, .top = 1, .right = 3, .bottom = 2}};
  const std::string boxed = encode_image_with_boxes(mixed, hwc, boxes).bytes;
  EXPECT_NE(boxed, wanted);
  EXPECT_EQ(encode_image_with_boxes(planes, chw, boxes).bytes, boxed);
  EXPECT_EQ(encode_image_with_boxes(parts(planes), chw, boxes).bytes, boxed);
  EXPECT_EQ(encode_image_with_boxes(parts(mixed), hwc, boxes).bytes, boxed);
}

// By the formulas of torch.utils.tensorboard._utils._prepare_video: 3 videos take 4 places, 2 rows of 2.
TEST(EncodeVideo, PutsVideosSideBySideAsPyTorchDoes) {
  const VideoSize size = {.videos = 3, .frames = 2, .channels = 3, .height = 4, .width = 5};
  const auto pixels = counting(3 * 2 * 3 * 4 * 5);
  std::vector<std::uint8_t> whole(2 * 8 * 10 * 3);
  for (std::size_t i = 0; i < pixels.size(); ++i) {
    const std::size_t v = i / 120, t = i / 60 % 2, c = i / 20 % 3, y = i / 5 % 4, x = i % 5;
    whole[((t * 3 + c) * 8 + v / 2 * 4 + y) * 10 + v % 2 * 5 + x] = pixels[i];
  }
  const std::string wanted =
      encode_video(whole, {.frames = 2, .channels = 3, .height = 8, .width = 10}, 4).bytes;
  EXPECT_EQ(encode_video(pixels, size, 4).bytes, wanted);
  EXPECT_EQ(encode_video(parts(pixels), size, 4).bytes, wanted);
}

// The frames of an animated PNG as files of their own, whose checksums are not right.
std::vector<std::string> frames_of(const std::string& png) {
  constexpr std::size_t kHeaderEnd = 33;
  std::vector<std::string> frames;
  const auto number_at = [&](std::size_t at) { return std::stoul(to_hex(png.substr(at, 4)), nullptr, 16); };
  for (std::size_t at = kHeaderEnd, size = 0; at < png.size(); at += 12 + size) {
    size = number_at(at);
    const std::string type = png.substr(at + 4, 4);
    if (type == "fcTL") {
      EXPECT_EQ(to_hex(png.substr(at + 8 + 20, 6)), "00fa03e80000") << "250/1000 s";
    }
    if (type != "IDAT" && type != "fdAT") continue;
    const std::size_t number = type == "fdAT" ? 4 : 0;  // bytes before the pixels
    const std::string length = test::big_endian(size - number, 4);
    frames.push_back(png.substr(0, kHeaderEnd) + length + "IDAT" +
                     png.substr(at + 8 + number, size - number) + "any." + png.substr(png.size() - 12));
  }
  return frames;
}

TEST(EncodeVideo, KeepsThePixelsOfEveryFrame) {
  for (const std::int64_t channels : {1, 3}) {
    const auto pixels = counting(static_cast<std::size_t>(3 * channels * 4 * 5));
    const EncodedImage image =
        encode_video(pixels, {.frames = 3, .channels = channels, .height = 4, .width = 5}, 4);
    EXPECT_EQ(decode(image.bytes).height, 4u) << "readers without animations see the first frame";
    const std::vector<std::string> frames = frames_of(image.bytes);
    ASSERT_EQ(frames.size(), 3u);
    for (std::size_t frame = 0; frame < 3; ++frame) {
      const auto plane = [&](std::size_t channel) {
        return (frame * static_cast<std::size_t>(channels) + channel) * 20;
      };
      std::vector<std::uint8_t> wanted;
      for (std::size_t i = 0; i < 20; ++i) {
        for (std::size_t c = 0; c < static_cast<std::size_t>(channels); ++c)
          wanted.push_back(pixels[plane(c) + i]);
      }
      EXPECT_EQ(decode(frames[frame]).pixels, wanted) << frame;
    }
  }
}

TEST(EncodeVideo, HasHalfAsManyRowsWhereNoSquareFits) {
  const auto image =
      encode_video(counting(8 * 4 * 5), {.videos = 8, .frames = 1, .height = 4, .width = 5}, 4);
  EXPECT_EQ(image.height, 2 * 4);
  EXPECT_EQ(image.width, 4 * 5);
}

TEST(EncodeVideo, RefusesSizesThatDoNotMatch) {
  const auto pixels = counting(24);
  EXPECT_THROW(encode_video(pixels, {.videos = 5, .frames = 1, .height = 2, .width = 2}, 4), UsageError);
  EXPECT_THROW(encode_video(pixels, {.videos = 0, .frames = 1, .height = 2, .width = 2}, 4), UsageError);
  EXPECT_THROW(
      encode_video(pixels, {.videos = 65535, .frames = 65535, .channels = 3, .height = 65535, .width = 65535},
                   4),
      UsageError);
}

// A picture as lines of text: "." black, "R" red, "B" blue, "w" white.
std::vector<std::string> drawn(ImageSize size, std::vector<Box> boxes, std::uint8_t ground = 0) {
  const std::vector<std::uint8_t> pixels(static_cast<std::size_t>(size.height * size.width), ground);
  const EncodedImage image = encode_image_with_boxes(pixels, size, boxes);
  const std::vector<std::uint8_t> rgb = decode(image.bytes, SPNG_FMT_RGB8).pixels;
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

}  // namespace sweep::tbwriter::image_test
