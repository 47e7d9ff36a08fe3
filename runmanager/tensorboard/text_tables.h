// The samples of a run's data, and its network, as tables for TensorBoard's Text tab.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "core/network/network.h"

namespace sweep {

/// A Markdown table of dataset_balance(): a row per class with its samples in each part and their share, or a
/// row per target with its mean and deviation. "" if `balance` is not one.
std::string data_table(const nlohmann::ordered_json& balance);

/// Markdown: a row per layer with name, type, arguments other than defaults, shape of one sample's output,
/// number of parameters, and floating-point operations of one sample's forward pass; then the sums.
std::string network_table(const Network& network);

}  // namespace sweep
