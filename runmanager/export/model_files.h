// Files with which other programs use a trained network: of ONNX, and of weights that PyTorch loads.
#pragma once

#include <filesystem>

#include "runmanager/inference/trained_run.h"

namespace sweep::onnx_format {
class GraphProto;
}

namespace sweep {

/// The operators are those of this version of ONNX's operator set, which every runtime since 2021 knows.
inline constexpr int kOnnxOperatorSet = 13;

/// The names of the graph's input, [batch, *format.shape], and output, [batch, outputs], both float32.
inline constexpr const char *kOnnxInput = "input", *kOnnxOutput = "output";

/// The network in evaluation mode. The input holds values as the data have them, bytes as 0 to 255: the first
/// nodes divide and normalise them as in training. The output is the network's, without softmax. Each layer
/// is a node with its name, or several, and its arrays have PyTorch's names.
onnx_format::GraphProto onnx_graph(const Network& network, const Weights& weights,
                                   const SampleFormat& format);

/// Replaces `path` by the network of `run`, as onnx_graph() makes it. Metadata: "run", "epoch", "input" (what
/// the samples are, as run.json has it), and "classes" or "targets" as lists of JSON. Throws IoError;
/// DataError for a network of 2 GiB or more, which such a file cannot hold.
void write_onnx(const std::filesystem::path& path, const LoadedRun& run);

/// Replaces `path` by a safetensors file with the weights and running statistics of `run` alone, under the
/// names of PyTorch's state_dict: torch.nn.Module.load_state_dict(safetensors.torch.load_file(path)).
/// Metadata: "run", "epoch" and "input", as run.json has it. Throws IoError.
void write_state_dict(const std::filesystem::path& path, const LoadedRun& run);

}  // namespace sweep
