// Arrays in a safetensors file, as Hugging Face's libraries write them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <istream>
#include <span>
#include <string>
#include <vector>

#include "core/data/readers/input_file.h"
#include "core/data/readers/named_arrays.h"
#include "core/data/readers/read_options.h"

namespace sweep {

/// True for a file that begins with the length of a header and a header, plain or gzip-compressed.
bool is_safetensors(const std::filesystem::path& path);

/// Reads the tensors of a file, in the order in which they lie there, to its end: BOOL, U8 to U64, I8 to I64,
/// F16, BF16, F32 and F64; see ArrayValues for what they become. Throws DataError for other types and for
/// whatever makes the file malformed; see safetensors_header.h.
std::vector<NamedArray> read_safetensors_arrays(InputFile& file);

/// The same of one file by its path. The SHA-256 is that of the content.
DataArrays read_safetensors_data(std::span<const std::filesystem::path> paths, const ReadOptions& options);

}  // namespace sweep
