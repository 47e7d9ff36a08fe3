// The activation functions. To add one: its name here, its row in core/network/layers.cpp, and its
// formulas in core/kernels/cpu/kernels/layer_kernels.cpp, core/kernels/cuda/kernels/activation.h and
// runmanager/export/model_files.cpp. The switches there have no default, so the compiler names them.
#pragma once

namespace sweep {

enum class Activation { kRelu, kLeakyRelu, kTanh, kSigmoid, kGelu, kSilu };

}  // namespace sweep
