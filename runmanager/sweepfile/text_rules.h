// Rules for values that kind and choices do not describe: names of sweeps and devices, and counts that may be
// switched on and off.
#pragma once

#include <cstddef>

#include "runmanager/config/problems.h"
#include "runmanager/text/json_document.h"

namespace sweep {

/// In bytes. File systems allow 255; this leaves room for the "-2" of a second sweep and for suffixes of
/// temporary files.
inline constexpr std::size_t kMaxNameLength = 100;

/// Checks the name of a sweep or data set: it has to be a directory name on every file system, and must not
/// look like an option or a hidden file. Returns whether it is good; if not, a problem was added.
bool check_directory_name(const JsonNode& node, Problems& problems);

/// Checks the name of a table's column: text that is not empty. Returns whether it is good; if not, a problem
/// was added.
bool check_column_name(const JsonNode& node, Problems& problems);

/// The same for one name, or a list of at least one.
bool check_column_names(const JsonNode& node, Problems& problems);
/// The same, where a name may be empty.
bool check_ignored_columns(const JsonNode& node, Problems& problems);

/// What check_device_name() accepts, for messages.
inline constexpr const char* kAllowedDevices =
    "cpu, cuda, cuda:N, cpu:N (N is a device number from 0) or auto";

/// Checks that parse_device() understands the value. Returns whether it does; if not, a problem was added.
bool check_device_name(const JsonNode& node, Problems& problems);

/// Samples in the image of the first batch, at most.
inline constexpr int kMaxLoggedImages = 4096;

/// Checks "log.images": false, true, or a count. Returns whether it is good; if not, a problem was added.
bool check_image_count(const JsonNode& node, Problems& problems);

}  // namespace sweep
