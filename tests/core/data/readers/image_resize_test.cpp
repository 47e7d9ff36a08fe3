// Resizing: row by row gives what the formula in image_resize.h says.
#include "core/data/readers/images/image_resize.h"

#include "tests/support/image_files.h"
#include "tests/support/test.h"

namespace sweep::image_resize_test {

using test::make_pixels, test::Pixels;

std::vector<std::uint8_t> resize(const Pixels& pixels, ImageSize to) {
  RowResizer resizer({pixels.height, pixels.width}, to, pixels.channels);
  const std::size_t row = std::size_t{pixels.width} * pixels.channels;
  for (std::size_t y = 0; y < pixels.height; ++y)
    resizer.add_row(std::span(pixels.values).subspan(y * row, row));
  return resizer.take_result();
}

std::vector<double> weights(std::uint32_t from, std::uint32_t to, std::uint32_t i) {
  const double scale = static_cast<double>(from) / to, radius = std::max(scale, 1.0);
  std::vector<double> all;
  double sum = 0;
  for (std::uint32_t j = 0; j < from; ++j) {
    all.push_back(std::max(0.0, 1 - std::abs(j + 0.5 - (i + 0.5) * scale) / radius));
    sum += all.back();
  }
  for (double& weight : all) weight /= sum;
  return all;
}

double value_at(const Pixels& pixels, ImageSize to, std::uint32_t y, std::uint32_t x, std::uint32_t c) {
  const std::vector<double> rows = weights(pixels.height, to.height, y),
                            columns = weights(pixels.width, to.width, x);
  double value = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    for (std::size_t j = 0; j < columns.size(); ++j) {
      value += rows[i] * columns[j] * pixels.values[(i * pixels.width + j) * pixels.channels + c];
    }
  }
  return value;
}

struct Sizes {
  ImageSize from, to;
};
class ResizeTo : public testing::TestWithParam<Sizes> {};

TEST_P(ResizeTo, FollowsTheFormula) {
  const auto [from, to] = GetParam();
  for (const std::uint32_t channels : {1u, 3u}) {
    const Pixels pixels = make_pixels(
        from.height, from.width, channels,
        [](unsigned y, unsigned x, unsigned c) { return (y * 7919 + x * 104729 + c * 31) % 256; });
    const std::vector<std::uint8_t> result = resize(pixels, to);
    ASSERT_EQ(result.size(), std::size_t{to.height} * to.width * channels);
    for (std::uint32_t y = 0, i = 0; y < to.height; ++y) {
      for (std::uint32_t x = 0; x < to.width; ++x) {
        for (std::uint32_t c = 0; c < channels; ++c, ++i) {
          EXPECT_NEAR(result[i], value_at(pixels, to, y, x, c), 0.51) << y << ", " << x << ", " << c;
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, ResizeTo,
                         testing::Values(Sizes{{1, 1}, {3, 2}}, Sizes{{7, 5}, {7, 5}},
                                         Sizes{{20, 30}, {5, 10}}, Sizes{{20, 30}, {7, 11}},
                                         Sizes{{5, 4}, {9, 13}}, Sizes{{3, 40}, {12, 6}},
                                         Sizes{{33, 2}, {8, 2}}, Sizes{{2, 2}, {1, 1}}));

}  // namespace sweep::image_resize_test
