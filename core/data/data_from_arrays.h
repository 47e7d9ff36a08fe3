// Checks arrays and makes data sets of them; all readers go through here.
#pragma once

#include <string>
#include <vector>

#include "core/data/dataset.h"
#include "core/data/readers/named_arrays.h"

namespace sweep {

/// Makes a data set of arrays with these names, in upper or lower case,
///   samples  "features", "x", "data", "images" or "inputs"
///   targets  "labels", "y", "targets" or "classes"; or the name in spec.label or spec.targets
/// with "_train", "_validation" ("_val", "_valid") or "_test" at the end or "train_", … in front for a part
/// of the data. Samples: [count, features], or [count, height, width] of one channel, or [count, channels,
/// height, width]; a last extent of 3 or 1 with larger ones before it means [count, height, width, channels]
/// and is moved; an ambiguous shape is refused unless spec.channels decides. Targets: [count] or
/// [count, 1] of integers are classes 0, 1, …; floats are values. Both are alike in all parts. With
/// spec.label, whole floats are also classes. Other arrays are noted. The rest of `spec` applies as
/// split_parts() says. `name` is the source's name in messages. Throws DataError for other arrays,
/// ConfigError as split_parts() does. `trained`: null, or that of load_dataset_for().
Dataset data_from_arrays(DataArrays data, const DatasetSpec& spec, const std::string& name,
                         const SampleFormat* trained = nullptr);

/// The samples among `arrays`, which data_from_arrays() would find, or the only array whatever its name. NaN
/// is allowed with `missing` kMean. Throws DataError if there are several, or none, or if one sample is not
/// of the shape `wanted`, with its channels first or last.
SampleArray samples_from_arrays(std::vector<NamedArray> arrays, MissingValues missing, const Shape& wanted,
                                const std::string& name);

}  // namespace sweep
