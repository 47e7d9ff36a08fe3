#include "core/engine/engine.h"

#include <nlohmann/json.hpp>

#include "core/base/error.h"

namespace sweep {

void Engine::set_momentum(double) {
  throw ConfigError("this device's engine cannot change the momentum while it trains");
}

bool gives_same_bits(std::string_view kernels) {
  // "own" and what is no JSON at all name kernels that have no other way.
  const auto json = nlohmann::json::parse(kernels, nullptr, false);
  return !json.is_object() || json.value("same_bits", nlohmann::json(true)) != false;
}

}  // namespace sweep
