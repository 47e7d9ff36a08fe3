// Reads "dataset" of a sweep file, and writes it to "resolved" of a run.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <span>
#include <vector>

#include "core/data/augment.h"
#include "core/data/dataset.h"
#include "core/spec/placement.h"
#include "runmanager/config/problems.h"
#include "runmanager/sweepfile/config_reader.h"
#include "runmanager/text/json_document.h"

namespace sweep {

/// Returns the path in `node`. Paths in the file are relative to `directory`, where the file is; those on the
/// command line (line 0) to the current directory.
std::filesystem::path resolved_path(const JsonNode& node, const std::filesystem::path& directory);

/// What a data set in `path` is called that has no name: "wine" for "data/wine.csv".
std::string name_of_path(const std::filesystem::path& path);

/// Reads "dataset" of the sweep file `tree`. Adds a problem for everything that is wrong with it.
DatasetSpec read_dataset(const JsonNode& tree, const ReadContext& context, Problems& problems);

/// Reads "dataset.placement" of the sweep file `tree`.
Placement read_placement(const JsonNode& tree, Problems& problems);

/// Reads "dataset.augment" of the sweep file `tree`.
std::vector<AugmentStep> read_augment(const JsonNode& tree, Problems& problems);

/// Returns "dataset" of a run with every default filled in.
nlohmann::ordered_json dataset_json(const DatasetSpec& dataset, Placement placement,
                                    std::span<const AugmentStep> augment);

}  // namespace sweep
