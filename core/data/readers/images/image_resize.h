// Resizes images row by row.
//
// The filter is the triangle of PIL's and torchvision's "bilinear" with antialiasing. With scale = in / out
// and radius = max(scale, 1), output pixel i is the mean of the input pixels j, weighted by
//   max(0, 1 - |j + 0.5 - (i + 0.5) * scale| / radius),
// in each direction. An equal size leaves the image as it is. Sums are in float, rounded to the nearest once
// at the end, where PIL rounds after each direction: results differ from PIL's by at most one or two.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "core/data/readers/images/image_file.h"

namespace sweep {

/// Takes the rows of an image from the top and keeps only what it needs: for a smaller result, three sums of
/// rows. The vertical direction comes first, because it runs along whole rows, which compilers
/// vectorise, and leaves few rows for the horizontal one.
class RowResizer {
 public:
  /// All extents at least 1. Values are interleaved: [height, width, channels].
  RowResizer(ImageSize from, ImageSize to, std::size_t channels);

  /// The next row: from.width * channels values.
  void add_row(std::span<const std::uint8_t> row);

  /// The resized image, [to.height, to.width, channels], after from.height rows.
  std::vector<std::uint8_t> take_result() { return std::move(result_); }

 private:
  /// For each output pixel of one direction: which input pixels it is made of. All weights are in
  /// one array; those of a pixel add up to 1.
  struct Taps {
    std::size_t first = 0;    // input pixel
    std::size_t count = 0;    // of input pixels
    std::size_t weights = 0;  // index of the first weight
  };
  struct Filter {
    Filter(std::uint32_t from, std::uint32_t to);
    std::vector<Taps> taps;
    std::vector<float> weights;
  };
  void open_row(std::size_t values);
  void finish_row(std::size_t out_row, const std::vector<float>& sum);

  ImageSize to_;
  std::size_t channels_;
  Filter vertical_;
  Filter horizontal_;
  std::size_t rows_ = 0;                   // that have been added
  std::size_t first_open_ = 0;             // output rows before it are finished
  std::vector<std::vector<float>> open_;   // sums of output rows first_open_, first_open_ + 1, …
  std::vector<std::vector<float>> spare_;  // memory of finished ones
  std::vector<std::uint8_t> result_;
};

}  // namespace sweep
