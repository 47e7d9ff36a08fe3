#include "core/engine/engine.h"

#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/json/json_text.h"

namespace sweep {

Totals& Totals::operator+=(const Totals& more) {
  loss += more.loss;
  correct += more.correct;
  samples += more.samples;
  ranked += more.ranked;
  in_top += more.in_top;
  numbers += more.numbers;
  absolute_error += more.absolute_error;
  squared_error += more.squared_error;
  return *this;
}

void Engine::set_momentum(double) {
  throw ConfigError("this device's engine cannot change the momentum while it trains");
}

bool is_deterministic(std::string_view kernels) {
  // Texts that are not JSON objects, such as "own", name kernels that are deterministic.
  if (!kernels.starts_with('{')) return true;
  try {
    const nlohmann::ordered_json json = parse_json_text(kernels, "kernels:");
    return json.value("same_bits", nlohmann::ordered_json(true)) != false;
  } catch (const DataError&) {
    return true;
  }
}

}  // namespace sweep
