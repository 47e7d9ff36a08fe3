// Files with which other programs use a trained network: of ONNX, and of weights that PyTorch loads.
#pragma once

#include <filesystem>

#include "runmanager/inference/trained_run.h"

namespace sweep {

/// Replaces `path` by the network of `run`; see onnx_graph.h for its input and output. Metadata: "run",
/// "epoch", "input" (what the samples are, as run.json has it), and "classes" or "targets" as lists of JSON.
/// Throws IoError; DataError for a network of 2 GiB or more, which such a file cannot hold.
void write_onnx(const std::filesystem::path& path, const LoadedRun& run);

/// Replaces `path` by a safetensors file with the weights and running statistics of `run` alone, under the
/// names of PyTorch's state_dict: torch.nn.Module.load_state_dict(safetensors.torch.load_file(path)).
/// Metadata: "run", "epoch" and "input", as run.json has it. Throws IoError.
void write_state_dict(const std::filesystem::path& path, const LoadedRun& run);

}  // namespace sweep
