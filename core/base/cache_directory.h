// Where the program keeps files of a user that it can make or fetch again.
#pragma once

#include <filesystem>

namespace sweep {

/// $XDG_CACHE_HOME/sweep, or $HOME/.cache/sweep without that variable; empty if neither is set. It need not
/// exist. Thread-safe as long as nobody changes the environment.
std::filesystem::path user_cache_directory();

}  // namespace sweep
