// Points with labels and pictures for TensorBoard's Projector tab.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tbwriter/image.h"

namespace sweep::tbwriter {

/// What is known of the points besides their coordinates.
struct EmbeddingLabels {
  std::vector<std::string> header = {};             // names of columns; needed if there are two or more
  std::vector<std::vector<std::string>> rows = {};  // one per point
};

/// A small picture of each point, [points, channels, height, width] of 8 bits.
struct EmbeddingPictures {
  std::span<const std::uint8_t> pixels = {};
  BatchSize size = {};
};

/// Writes `<directory>/<tag>/<step>/` with tensor, labels and sprite, and adds it to
/// `projector_config.pbtxt`, which it replaces atomically. See SummaryWriter::add_embedding for values and
/// errors.
void write_embedding(const std::filesystem::path& directory, std::string_view tag,
                     std::span<const float> points, std::int64_t dimensions, const EmbeddingLabels& labels,
                     const EmbeddingPictures& pictures, std::int64_t step);

}  // namespace sweep::tbwriter
