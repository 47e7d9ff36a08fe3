// Files of weights that PyTorch loads.
#pragma once

#include <filesystem>

#include "runmanager/inference/trained_run.h"

namespace sweep {

/// Replaces `path` by a safetensors file with the weights and running statistics of `run` alone, under the
/// names of PyTorch's state_dict: torch.nn.Module.load_state_dict(safetensors.torch.load_file(path)).
/// Metadata: "run", "epoch" and "input", as run.json has it. Throws IoError.
void write_state_dict(const std::filesystem::path& path, const LoadedRun& run);

}  // namespace sweep
