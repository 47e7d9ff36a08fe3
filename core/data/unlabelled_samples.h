// New samples for a trained network, from files of people: pictures, tables and arrays without targets.
#pragma once

#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "core/data/dataset.h"

namespace sweep {

/// Takes samples, [names, *SampleFormat::shape], and their names: "cat.jpg", "new.csv:2" (the line),
/// "new.npy[0]".
using TakeSamples = std::function<void(SampleArray values, std::vector<std::string> names)>;

/// Reads `files` in their order and hands them to `take` piece by piece, so that many pictures need little
/// memory. What a file holds is told by its content, not by its name:
/// - JPEG, PNG, WebP: a sample of format.shape, resized to it and grayscaled if it has one
///   channel, as the pictures of an image folder are; only for bytes of 1 or 3 channels;
/// - CSV and TSV, plain or compressed, with the columns of `format`: see readers.h;
/// - other formats of data sets, such as .npy, .npz, safetensors and IDX images: see samples_from_arrays().
///   Bytes are for a network that was trained on bytes, other numbers for one that was trained on floats.
/// A folder means the files in it and below, sorted by name, without hidden ones. A file that cannot be
/// read, or that holds other samples than format.shape, is passed to `skip` with the reason. Not thread-safe;
/// pictures are decoded on `threads` threads (0: all cores).
void read_unlabelled(std::span<const std::filesystem::path> files, const SampleFormat& format,
                     unsigned threads, const TakeSamples& take, const std::function<void(SkippedFile)>& skip);

}  // namespace sweep
