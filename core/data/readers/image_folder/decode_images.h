// Decodes the files of an image folder.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "core/data/readers/image_folder/scan.h"
#include "core/data/readers/named_arrays.h"
#include "core/data/readers/read_options.h"
#include "core/data/readers/safetensors/mapped_tensors.h"

namespace sweep {

/// The outcome of decoding one image file.
struct DecodedFile {
  std::string sha256;       // of the file
  std::string problem;      // empty: decoded
  bool other_size = false;  // the problem is nothing but its size
};

/// Decodes `entries` to `out`, one after the other, [channels, height, width] each, on options.threads
/// threads. A file of another size (only without options.resize) or that is damaged has a problem, and takes
/// no place. Memory other than `out`: a file and a few rows for each thread. `meanwhile`, unless empty, is
/// called once by one of the threads.
std::vector<DecodedFile> decode_images(std::span<const ImageEntry> entries, const ReadOptions& options,
                                       ImageSize size, std::span<std::uint8_t> out,
                                       const std::function<void()>& meanwhile);

/// The shape of all samples: of options.resize, or of the first image that can be decoded. Throws DataError
/// if there is none.
Shape common_shape(const ImageFolder& folder, const ReadOptions& options, const std::string& name);

std::size_t image_count(const ImageFolder& folder);

/// Decodes `folder` to `samples`, in pieces of 32 MiB: while one is decoded by all threads, one of them
/// writes the last one. The memory needed does not depend on the number of images. The arrays of samples that
/// it returns have no values: those are in `samples`. Throws DataError, IoError.
DataArrays decode_image_folder(ImageFolder folder, const std::filesystem::path& root,
                               const ReadOptions& options, const Shape& shape, TensorWriter& samples);

}  // namespace sweep
