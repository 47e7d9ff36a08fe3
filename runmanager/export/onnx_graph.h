// A network as a graph of ONNX's operators.
#pragma once

#include "core/data/sample_format.h"
#include "core/network/network.h"
#include "proto/onnx.pb.h"
#include "runmanager/records/checkpoint.h"

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

}  // namespace sweep
