// The samples of a run's data for the Text tab.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace sweep {

/// A Markdown table of dataset_balance(): a row per class with its samples in each part and their share, or a
/// row per target with its mean and deviation. "" if `balance` is not one.
std::string data_table(const nlohmann::ordered_json& balance);

}  // namespace sweep
