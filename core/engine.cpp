#include "core/engine.h"

#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/kernels/cpu/cpu_engine.h"
#include "core/kernels/cuda/cuda_engine.h"

namespace sweep {

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
