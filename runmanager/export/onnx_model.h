// Files of ONNX, with which other programs use a trained network.
#pragma once

#include <filesystem>

#include "runmanager/inference/trained_run.h"

namespace sweep {

/// Replaces `path` by the network of `run`; see onnx_graph.h for its input and output. Metadata: "run",
/// "epoch", "input" (what the samples are, as run.json has it), and "classes" or "targets" as lists of JSON.
/// Throws IoError; DataError for a network of 2 GiB or more, which such a file cannot hold.
void write_onnx(const std::filesystem::path& path, const LoadedRun& run);

}  // namespace sweep
