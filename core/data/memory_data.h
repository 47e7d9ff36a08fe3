// Checks a program's own samples and makes of them what readers of files return. Not part of the installed
// interface, which is make_dataset().
#pragma once

#include <string>

#include "core/data/memory_dataset.h"
#include "core/data/readers/raw_data.h"

namespace sweep {

/// Moves the arrays of `data`. `name` begins every message. Throws DataError as make_dataset() does.
RawData raw_data_of(MemoryData data, MissingValues missing, const std::string& name);

}  // namespace sweep
