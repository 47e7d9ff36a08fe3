// New samples for a trained network, from files of people: pictures, tables and arrays without targets.
#pragma once

#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "core/data/readers/data_file.h"
#include "core/data/sample_format.h"

namespace sweep {

struct UnlabelledSamples {
  SampleArray values;              // [names, *SampleFormat::shape]
  std::vector<std::string> names;  // "cat.jpg", "new.csv:2" (the line), "new.npy[0]"
};

/// Reads `files` in their order and hands them to `take` piece by piece, so that many pictures need little
/// memory. What a file holds is told by its content, not by its name:
/// - JPEG, PNG, WebP: a sample of format.shape, resized to it and grayscaled if it has one
///   channel, as the pictures of an image folder are; only for bytes of 1 or 3 channels;
/// - CSV and TSV, plain or compressed: see read_table_features();
/// - .npy, .npz, safetensors: see samples_from_arrays(); IDX images: as such. Bytes are for a network that
/// was
///   trained on bytes, other numbers for one that was trained on floats.
/// A folder means the files in it and below, sorted by name, without hidden ones. A file that cannot be
/// read, or that holds other samples than format.shape, is passed to `skip` with the reason. Not thread-safe;
/// pictures are decoded on `threads` threads (0: all cores).
void read_unlabelled(std::span<const std::filesystem::path> files, const SampleFormat& format,
                     unsigned threads, const std::function<void(UnlabelledSamples)>& take,
                     const std::function<void(SkippedFile)>& skip);

}  // namespace sweep
