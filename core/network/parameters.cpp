// Initial parameter values. PyTorch draws conv2d and linear weights from kaiming_uniform(a = sqrt(5)), which
// is uniform in ±1/sqrt(fan_in), and biases from the same interval.
#include <algorithm>
#include <cmath>

#include "core/base/random.h"
#include "core/network/network.h"

namespace sweep {

std::vector<float> initial_parameters(const Network& network, std::uint64_t seed) {
  std::vector<float> values(network.parameter_count());
  std::uint32_t index = 0;
  for (const Parameter& parameter : network.parameters()) {
    const std::uint32_t stream = index++;
    if (parameter.fan_in == 0) {
      std::fill_n(values.begin() + static_cast<std::ptrdiff_t>(parameter.offset), parameter.count,
                  parameter.initial);
      continue;
    }
    const auto bound = static_cast<float>(1.0 / std::sqrt(static_cast<double>(parameter.fan_in)));
    RandomStream random(seed, RandomUse::kInitialisation, stream);
    for (std::size_t i = 0; i < parameter.count; ++i)
      values[parameter.offset + i] = random.uniform(-bound, bound);
  }
  return values;
}

std::vector<float> initial_buffers(const Network& network) {
  std::vector<float> values;
  for (const Parameter& buffer : network.buffers()) values.insert(values.end(), buffer.count, buffer.initial);
  return values;
}

}  // namespace sweep
