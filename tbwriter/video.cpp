// Encodes animated GIFs. GIF has at most 256 colours: gray frames keep all shades, RGB is rounded to a cube
// of 6 x 7 x 6 colours. https://www.w3.org/Graphics/GIF/spec-gif89a.txt
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "tbwriter/canvas.h"
#include "tbwriter/error.h"
#include "tbwriter/image.h"
#include "tbwriter/message.h"
#include "tbwriter/values.h"

namespace sweep::tbwriter {
namespace {

constexpr int kReds = 6, kGreens = 7, kBlues = 6;
constexpr int kCodeBits = 8;  // of the palette's indices
constexpr unsigned kClear = 1u << kCodeBits, kEnd = kClear + 1;
constexpr std::int64_t kMaxGifExtent = 65535;  // pixels each way
constexpr unsigned kMaxCodes = 4096;           // codes have at most 12 bits

std::uint8_t nearest_level(std::uint8_t value, int levels) {
  return static_cast<std::uint8_t>((value * (levels - 1) + 127) / 255);
}

std::string palette(std::int64_t channels) {
  std::string colors(3 * 256, '\0');
  for (int i = 0; i < 256; ++i) {
    int red = i, green = i, blue = i;
    if (channels == 3) {
      if (i >= kReds * kGreens * kBlues) break;
      red = i / (kGreens * kBlues) * 255 / (kReds - 1);
      green = i / kBlues % kGreens * 255 / (kGreens - 1);
      blue = i % kBlues * 255 / (kBlues - 1);
    }
    colors[3 * i] = static_cast<char>(red);
    colors[3 * i + 1] = static_cast<char>(green);
    colors[3 * i + 2] = static_cast<char>(blue);
  }
  return colors;
}

// LZW with variable-width codes, packed least significant bit first into blocks of up to 255 bytes.
// table_[prefix][pixel] is the code of the string `prefix` followed by `pixel`, 0 if there is none yet. When
// all codes are used, a clear code resets the table on both sides.
class LzwEncoder {
 public:
  std::string encode(std::span<const std::uint8_t> pixels) {
    reset();
    put(kClear);
    unsigned prefix = pixels[0];
    for (const std::uint8_t pixel : pixels.subspan(1)) {
      std::uint16_t& next = table_[prefix][pixel];
      if (next != 0) {
        prefix = next;
        continue;
      }
      put(prefix);
      if (next_code_ < kMaxCodes) {
        next = static_cast<std::uint16_t>(next_code_++);
        // The decoder adds each code one step later than the encoder. Therefore the width grows only after
        // the first code that does not fit, not when the last one that fits is assigned.
        if (next_code_ > (1u << width_) && width_ < 12) ++width_;
      } else {
        put(kClear);
        reset();
      }
      prefix = pixel;
    }
    put(prefix);
    put(kEnd);
    if (bit_count_ > 0) bytes_.push_back(static_cast<char>(bits_));
    return blocks();
  }

 private:
  void reset() {
    for (auto& row : table_) row.fill(0);
    next_code_ = kEnd + 1;
    width_ = kCodeBits + 1;
  }

  void put(unsigned code) {
    bits_ |= code << bit_count_;
    for (bit_count_ += width_; bit_count_ >= 8; bit_count_ -= 8) {
      bytes_.push_back(static_cast<char>(bits_));
      bits_ >>= 8;
    }
  }

  std::string blocks() const {
    std::string out(1, static_cast<char>(kCodeBits));
    for (std::size_t i = 0; i < bytes_.size(); i += 255) {
      const std::size_t size = std::min<std::size_t>(255, bytes_.size() - i);
      out.push_back(static_cast<char>(size));
      out.append(bytes_, i, size);
    }
    out.push_back('\0');
    return out;
  }

  std::vector<std::array<std::uint16_t, 256>> table_{kMaxCodes};
  unsigned next_code_ = 0, width_ = 0;
  unsigned bits_ = 0, bit_count_ = 0;
  std::string bytes_;
};

std::vector<std::uint8_t> indices(std::span<const std::uint8_t> frame, std::int64_t channels) {
  if (channels == 1) return {frame.begin(), frame.end()};
  std::vector<std::uint8_t> result(frame.size() / 3);
  for (std::size_t i = 0; i < result.size(); ++i) {
    const int red = nearest_level(frame[3 * i], kReds), green = nearest_level(frame[3 * i + 1], kGreens),
              blue = nearest_level(frame[3 * i + 2], kBlues);
    result[i] = static_cast<std::uint8_t>((red * kGreens + green) * kBlues + blue);
  }
  return result;
}

std::string shape_text(std::initializer_list<std::int64_t> extents) {
  std::string text;
  for (const std::int64_t extent : extents) text += (text.empty() ? "" : " x ") + std::to_string(extent);
  return text;
}

// Throws UsageError unless the extents fit a GIF and their product is `given`.
void check(const VideoSize& size, const std::string& shape, std::size_t given) {
  constexpr std::int64_t kMaxFrames = 1 << 20;
  const auto [videos, frames, channels, height, width] = size;
  std::size_t wanted = 1;
  for (const auto& [extent, most] : {std::pair(videos, kMaxGifExtent),
                                     {frames, kMaxFrames},
                                     {channels, 3},
                                     {height, kMaxGifExtent},
                                     {width, kMaxGifExtent}}) {
    if (extent < 1 || extent > most || channels == 2) {
      throw UsageError("a video of " + shape +
                       " was given, but needs 1 video and 1 frame or more, 1 or 3 channels, and 1 to 65535 "
                       "pixels each way");
    }
    // A product of five may overflow; one that is above the number of values cannot become right any more.
    wanted = wanted > given ? wanted : wanted * static_cast<std::size_t>(extent);
  }
  if (wanted != given) throw UsageError("a video of " + shape + " got " + std::to_string(given) + " values");
}

}  // namespace

EncodedImage encode_video(const Pixels& pixels, VideoSize size, double frames_per_second) {
  const auto [videos, frames, channels, height, width] = size;
  check(size, shape_text({videos, frames, channels, height, width}), count_values(pixels));
  if (!(frames_per_second > 0)) throw UsageError("a video needs more than 0 frames per second");
  // There are 2^bits places.
  const auto bits = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(videos - 1)));
  const std::int64_t rows = std::int64_t{1} << bits / 2, columns = std::int64_t{1} << (bits - bits / 2);
  const std::int64_t whole_height = rows * height, whole_width = columns * width;
  if (whole_height > kMaxGifExtent || whole_width > kMaxGifExtent) {
    throw UsageError("videos side by side would have " + std::to_string(whole_width) + " x " +
                     std::to_string(whole_height) + " pixels, but at most 65535 fit in each direction");
  }
  const auto delay = static_cast<std::uint16_t>(std::clamp(std::lround(100 / frames_per_second), 1l, 65535l));
  const auto put_size = [&](std::string& to) {
    wire::raw<std::uint16_t>(to, static_cast<std::uint16_t>(whole_width));
    wire::raw<std::uint16_t>(to, static_cast<std::uint16_t>(whole_height));
  };
  std::string gif = "GIF89a";
  put_size(gif);
  gif += std::string("\xF7\x00\x00", 3) + palette(channels);              // 256 colours for all frames
  gif += std::string("\x21\xFF\x0BNETSCAPE2.0\x03\x01\x00\x00\x00", 19);  // forever
  Canvas canvas({whole_height, whole_width, channels});
  for (std::int64_t frame = 0; frame < frames; ++frame) {
    for (std::int64_t video = 0; video < videos; ++video) {
      canvas.put(pixels, {1, channels, height, width}, video * frames + frame, video % columns * width,
                 video / columns * height);
    }
    gif += std::string("\x21\xF9\x04\x00", 4);
    wire::raw(gif, delay);
    gif += std::string("\x00\x00\x2C\x00\x00\x00\x00", 7);
    put_size(gif);
    gif.push_back('\0');
    gif += LzwEncoder().encode(indices(canvas.pixels, channels));
  }
  gif.push_back(';');
  return {whole_width, whole_height, channels, std::move(gif)};
}

}  // namespace sweep::tbwriter
