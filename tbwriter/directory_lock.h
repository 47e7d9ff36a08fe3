// Locks a run's directory for one writer at a time. Not part of the installed interface.
#pragma once

#include <filesystem>

#include "core/base/file.h"

namespace sweep::tbwriter {

/// Locks an existing directory until the descriptor is closed or the process has ended in any way. Does
/// nothing on file systems without locks. Throws IoError if another writer, in this or another process, holds
/// the lock.
FileDescriptor lock_directory(const std::filesystem::path& directory);

}  // namespace sweep::tbwriter
