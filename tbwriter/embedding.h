// Embeddings for TensorBoard's Projector tab: points with labels and pictures.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tbwriter/image.h"

namespace sweep::tbwriter {

/// Labels of the points.
struct EmbeddingLabels {
  std::vector<std::string> header = {};             // names of the columns; required for two or more columns
  std::vector<std::vector<std::string>> rows = {};  // [points, columns]; empty: no labels
};

/// A small picture of each point, [points, channels, height, width] with 8 bits
/// per value; empty: no pictures.
struct EmbeddingPictures {
  std::span<const std::uint8_t> pixels = {};
  BatchSize size = {};
};

/// Writes tensor, labels and sprite to `<directory>/<tag>/<step>/` and adds them to `projector_config.pbtxt`,
/// which is replaced atomically. Parameters and errors are those of SummaryWriter::add_embedding(). Not
/// thread-safe for the same directory.
void write_embedding(const std::filesystem::path& directory, std::string_view tag,
                     std::span<const float> points, std::int64_t dimensions, const EmbeddingLabels& labels,
                     const EmbeddingPictures& pictures, std::int64_t step);

}  // namespace sweep::tbwriter
