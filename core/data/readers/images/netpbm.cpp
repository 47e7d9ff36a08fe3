// PGM and PPM, http://netpbm.sourceforge.net/doc/: "P5" and "P6" in binary, "P2" and "P3" as text.
#include <algorithm>

#include "core/data/readers/images/pixel_sink.h"

namespace sweep {
namespace {

class NetpbmFile {
 public:
  NetpbmFile(std::span<const std::uint8_t> file, const PixelSink& sink) : file_(file), sink_(sink) {}

  /// The next number of the header or of a text file, behind white space and comments.
  std::uint32_t number() {
    for (;; ++position_) {
      if (position_ == file_.size()) sink_.fail("is cut short");
      if (file_[position_] == '#') {
        while (position_ + 1 < file_.size() && file_[position_] != '\n') ++position_;
      } else if (!is_space(file_[position_])) {
        break;
      }
    }
    std::uint32_t value = 0;
    const std::size_t first = position_;
    for (; position_ < file_.size() && file_[position_] >= '0' && file_[position_] <= '9'; ++position_) {
      value = value * 10 + (file_[position_] - std::uint32_t{'0'});
      if (value > 100'000'000) sink_.fail("the header holds a number that is too large");
    }
    if (position_ == first) sink_.fail("the header holds something else than numbers");
    return value;
  }

  /// The bytes behind the header, which one character of white space ends.
  std::span<const std::uint8_t> rest() const { return file_.subspan(std::min(position_ + 1, file_.size())); }

 private:
  static bool is_space(std::uint8_t c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

  std::span<const std::uint8_t> file_;
  const PixelSink& sink_;
  std::size_t position_ = 2;  // behind the magic number
};

}  // namespace

void decode_netpbm(std::span<const std::uint8_t> file, PixelSink& sink) {
  const bool text = file[1] == '2' || file[1] == '3';
  const std::size_t channels = file[1] == '3' || file[1] == '6' ? 3 : 1;
  NetpbmFile netpbm(file, sink);
  const std::uint32_t width = netpbm.number();
  const std::uint32_t height = netpbm.number();
  const std::uint32_t maximum = netpbm.number();
  sink.check_size(height, width);
  if (maximum == 0 || maximum > 65535) {
    sink.fail("the largest value is " + std::to_string(maximum) + "; allowed: 1 to 65535");
  }
  const std::size_t row_values = width * channels;
  // A value as text takes two characters, with the space between them.
  const std::size_t value_bytes = text || maximum > 255 ? 2 : 1;
  const std::uint64_t needed = std::uint64_t{row_values} * height * value_bytes - (text ? 1 : 0);
  const std::span<const std::uint8_t> data = netpbm.rest();
  if (needed > data.size()) {
    sink.fail("is cut short: " + std::to_string(width) + " x " + std::to_string(height) + " pixels need " +
              std::to_string(needed) + " bytes, " + std::to_string(data.size()) + " are there");
  }

  sink.begin({height, width}, channels, 1);
  std::vector<std::uint8_t> row(row_values);
  std::size_t at = 0;
  for (std::uint32_t y = 0; y < height; ++y) {
    for (std::uint8_t& out : row) {
      std::uint32_t value = 0;
      if (text) {
        value = netpbm.number();
      } else {
        value = data[at++];
        if (value_bytes == 2) value = value << 8 | data[at++];
      }
      if (value > maximum)
        sink.fail("holds a value above " + std::to_string(maximum) + ", its largest value");
      out = static_cast<std::uint8_t>((value * 255 + maximum / 2) / maximum);
    }
    sink.add_row(row);
  }
}

}  // namespace sweep
