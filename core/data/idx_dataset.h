// Data sets of four IDX files with MNIST's file names: images and labels, to train on and to test with.
#pragma once

#include "core/data/data_format.h"

namespace sweep {

/// Format "idx": train-images-idx3-ubyte, train-labels-idx1-ubyte, t10k-images-idx3-ubyte and
/// t10k-labels-idx1-ubyte, each plain or with ".gz". Images have one channel. A directory without any
/// t10k file has no test set.
DataFormat idx_format();

}  // namespace sweep
