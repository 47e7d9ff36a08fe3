// Images in a folder per class, as torchvision's ImageFolder reads them.
#pragma once

#include <filesystem>
#include <span>

#include "core/data/readers/named_arrays.h"
#include "core/data/readers/read_options.h"

namespace sweep {

/// Reads an image folder; see scan_image_folder() for what it may hold. Samples are bytes, [3, height, width]
/// or [1, height, width] with options.grayscale, in memory that processes can share. Files that are no
/// images, damaged or too large are skipped and listed. Without options.resize all images must have the size
/// of the first. `files` holds the folder alone, with the SHA-256 of lines "DIGEST  PATH\n", one per image
/// that was used, as sha256sum prints them, by part, class and path. Options used: resize, grayscale, cache
/// and those for all formats. Throws DataError.
///
/// With options.cache, the images come from a file in that folder if they are in it, else they are decoded to
/// that file, which is kept. There is one for each folder of images and set of options. The samples are that
/// file's memory, so the folder may be larger than this machine's. What cannot be written is no error, but
/// decoded into memory, and has a line in DataArrays::notes.
///
/// A kept file belongs to the folder, by its canonical path, to the options that change a decoded pixel, and
/// to the list of files with their size, time of modification and time of status change. The latter is set by
/// the system at every write and rename, and no program can set it back, so a folder whose files have other
/// content has another list, also after `cp -p` or `touch -r`. Reading the files to hash them would take half
/// as long as decoding them. A folder is kept only if its list is the same after decoding, and old enough by
/// then that the next write would get another time (file systems count in steps of up to 2 s).
/// DataArrays::files has the SHA-256 of the files as they were decoded, so that a run's identity does not
/// depend on the cache.
DataArrays read_image_folder(std::span<const std::filesystem::path> paths, const ReadOptions& options);

}  // namespace sweep
