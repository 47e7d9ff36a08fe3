// The calls of SummaryWriter that encode pictures and videos. What they encode is an image like any other.
#include "tbwriter/summary_writer.h"

namespace sweep::tbwriter {

void SummaryWriter::add_image(std::string_view tag, std::span<const std::uint8_t> pixels, ImageSize size,
                              std::int64_t step, const Details& details) {
  add_image(tag, encode_image(pixels, size), step, details);
}

void SummaryWriter::add_image(std::string_view tag, std::span<const float> pixels, ImageSize size,
                              std::int64_t step, const Details& details) {
  add_image(tag, encode_image(pixels, size), step, details);
}

void SummaryWriter::add_image_grid(std::string_view tag, std::span<const std::uint8_t> pixels, BatchSize size,
                                   std::int64_t step, const GridOptions& grid, const Details& details) {
  add_image(tag, encode_image_grid(pixels, size, grid), step, details);
}

void SummaryWriter::add_image_grid(std::string_view tag, std::span<const float> pixels, BatchSize size,
                                   std::int64_t step, const GridOptions& grid, const Details& details) {
  add_image(tag, encode_image_grid(pixels, size, grid), step, details);
}

void SummaryWriter::add_image_with_boxes(std::string_view tag, std::span<const std::uint8_t> pixels,
                                         ImageSize size, std::span<const Box> boxes, std::int64_t step,
                                         const Details& details) {
  add_image(tag, encode_image_with_boxes(pixels, size, boxes), step, details);
}

void SummaryWriter::add_image_with_boxes(std::string_view tag, std::span<const float> pixels, ImageSize size,
                                         std::span<const Box> boxes, std::int64_t step,
                                         const Details& details) {
  add_image(tag, encode_image_with_boxes(pixels, size, boxes), step, details);
}

void SummaryWriter::add_video(std::string_view tag, std::span<const std::uint8_t> pixels, VideoSize size,
                              double frames_per_second, std::int64_t step, const Details& details) {
  add_image(tag, encode_video(pixels, size, frames_per_second), step, details);
}

void SummaryWriter::add_videos(std::string_view tag, std::span<const std::uint8_t> pixels,
                               VideoBatchSize size, double frames_per_second, std::int64_t step,
                               const Details& details) {
  add_image(tag, encode_videos(pixels, size, frames_per_second), step, details);
}

void SummaryWriter::add_videos(std::string_view tag, std::span<const float> pixels, VideoBatchSize size,
                               double frames_per_second, std::int64_t step, const Details& details) {
  add_image(tag, encode_videos(pixels, size, frames_per_second), step, details);
}

}  // namespace sweep::tbwriter
