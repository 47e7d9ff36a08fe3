#include "core/engine.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/kernels/cpu/cpu_engine.h"
#include "core/kernels/cuda/cuda_engine.h"

namespace sweep {

namespace {

constexpr std::array<std::string_view, 3> kPlacements = {"auto", "device", "host"};

}  // namespace

std::string_view to_string(Placement placement) {
  return kPlacements.at(static_cast<std::size_t>(placement));
}

Placement parse_placement(std::string_view text) {
  const auto found = std::find(kPlacements.begin(), kPlacements.end(), text);
  if (found == kPlacements.end())
    throw ConfigError("unknown placement \"" + std::string(text) + "\"; allowed: auto, device, host");
  return static_cast<Placement>(found - kPlacements.begin());
}

void Engine::set_momentum(double) {
  throw ConfigError("this device's engine cannot change the momentum while it trains");
}

bool gives_same_bits(std::string_view kernels) {
  // "own" and what is no JSON at all name kernels that have no other way.
  const auto json = nlohmann::json::parse(kernels, nullptr, false);
  return !json.is_object() || json.value("same_bits", nlohmann::json(true)) != false;
}

std::unique_ptr<Engine> make_engine(const Network& network, const EngineOptions& options) {
  if (auto reason = unavailable_reason(options.device, options.precision))
    throw DeviceError(options.device.name() + ": " + *reason);
  if (options.device.type == DeviceType::kCuda) return make_cuda_engine(network, options);
  return make_cpu_engine(network, options);
}

}  // namespace sweep
