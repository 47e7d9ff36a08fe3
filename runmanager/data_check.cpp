#include "runmanager/data_check.h"

#include <fmt/format.h>

#include "core/base/error.h"
#include "core/network/network.h"

namespace sweep {
namespace {

constexpr std::size_t kMostParameters = std::size_t{1}
                                        << 31;  // 8 GiB of floats; gradients and state come on top.

std::string origin(const RunConfig& run, const std::filesystem::path& file, const std::string& key) {
  const auto found = run.origins.find(key);
  return found != run.origins.end() ? found->second : fmt::format("{}: {}", file.string(), key);
}

// Index of the first layer that does not fit, for a network that does not fit as a whole.
std::size_t first_bad_layer(const NetworkSpec& network, const Shape& input) {
  for (std::size_t count = 1; count <= network.layers.size(); ++count) {
    NetworkSpec front{network.name,
                      {network.layers.begin(), network.layers.begin() + static_cast<std::ptrdiff_t>(count)}};
    front.layers.push_back({"end", "flatten", {}});  // Whatever the layers give, a network may end with it.
    for (std::size_t i = 0; i < count; ++i) front.layers[i].name = std::to_string(i);
    try {
      Network(std::move(front), input);
    } catch (const ConfigError&) {
      return count - 1;
    }
  }
  return network.layers.size() - 1;  // Each layer fits: it is the end that does not.
}

void check_network(const RunConfig& run, const std::filesystem::path& file, const DataSizes& sizes,
                   Problems& problems) {
  const auto layer_origin = [&](std::size_t i) {
    return origin(run, file, fmt::format("network.layers.{}", i));
  };
  try {
    const Network network(run.network, sizes.shape);
    const auto outputs = static_cast<std::size_t>(network.output()[0]);
    if (outputs < sizes.classes) {
      problems.add_message(
          fmt::format("{}: the network ends with {} outputs, want at least {}, one per class",
                      layer_origin(run.network.layers.size() - 1), outputs, sizes.classes));
    }
    if (network.parameter_count() > kMostParameters) {
      problems.add_message(fmt::format("{}: the network has {} weights, want at most {}",
                                       origin(run, file, "network"), network.parameter_count(),
                                       kMostParameters));
    }
  } catch (const ConfigError& error) {
    problems.add_message(
        fmt::format("{}: {}", layer_origin(first_bad_layer(run.network, sizes.shape)), error.what()));
  }
}

}  // namespace

std::optional<DataSizes> known_data_sizes(const DatasetSpec& spec) {
  constexpr std::size_t kTrain = 60000;
  if (!spec.path.empty() || (spec.name != "fashion-mnist" && spec.name != "mnist")) return std::nullopt;
  const auto* fraction = std::get_if<double>(&spec.validation);
  const std::size_t validation = fraction != nullptr
                                     ? static_cast<std::size_t>(*fraction * static_cast<double>(kTrain))
                                     : std::get<std::size_t>(spec.validation);
  DataSizes sizes{{1, 28, 28}, 10, validation < kTrain ? kTrain - validation : 0};
  if (spec.limit > 0) sizes.train = std::min(sizes.train, spec.limit);
  return sizes;
}

void check_run_against_data(const RunConfig& run, const std::filesystem::path& file, const DataSizes& sizes,
                            Problems& problems) {
  if (sizes.train == 0) {
    problems.add_message(
        fmt::format("{}: this leaves nothing to train on", origin(run, file, "dataset.validation")));
  } else if (run.batch_size > sizes.train) {
    problems.add_message(fmt::format(
        "{}: got {}{}, want at most {}, the number of training samples", origin(run, file, "batch_size"),
        run.batch_size, run.origins.count("batch_size") > 0 ? "" : " (the default)", sizes.train));
  }
  const std::vector<float>& mean = run.dataset.transform.mean;
  if (!mean.empty() && static_cast<std::int64_t>(mean.size()) != sizes.shape.at(0)) {
    problems.add_message(fmt::format("{}: got {} means, want {}, one per channel",
                                     origin(run, file, "dataset.normalize"), mean.size(), sizes.shape.at(0)));
  }
  check_network(run, file, sizes, problems);
}

}  // namespace sweep
