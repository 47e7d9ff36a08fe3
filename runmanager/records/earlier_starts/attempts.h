// What earlier versions left of sweeps that several processes shared.
#pragma once

#include <filesystem>

namespace sweep {

/// Gives checkpoints their usual names: earlier versions put the attempt into them until the run had ended,
/// "checkpoint.3f2a9c01d2e4b6a8-2.safetensors". Of several attempts the one counts that has written last.
/// Then removes the folder ".claims", which told who worked on what. A symbolic link of that name stays. For
/// when no other process works on the sweep. Throws IoError.
void adopt_attempts(const std::filesystem::path& sweep_directory);

}  // namespace sweep
