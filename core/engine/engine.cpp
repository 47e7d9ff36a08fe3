#include "core/engine/engine.h"

#include <nlohmann/json.hpp>

#include "core/base/error.h"

namespace sweep {

void Engine::set_momentum(double) {
  throw ConfigError("this device's engine cannot change the momentum while it trains");
}

bool gives_same_bits(std::string_view kernels) {
  // Texts that are not JSON objects, such as "own", name kernels that are deterministic.
  const auto json = nlohmann::json::parse(kernels, nullptr, false);
  return !json.is_object() || json.value("same_bits", nlohmann::json(true)) != false;
}

}  // namespace sweep
