#include "tools/benchmarks/search_functions.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <numbers>
#include <vector>

#include "core/base/file.h"
#include "core/json/json_text.h"

namespace sweep {
namespace {

using enum DimensionKind;

double square(double x) { return x * x; }

SearchDomain cube(std::size_t dimensions, double low, double high) {
  return {.dimensions = std::vector<Dimension>(dimensions, {.kind = kUniform, .low = low, .high = high})};
}

double branin(const SearchPoint& point) {
  const double pi = std::numbers::pi, x = *point[0], y = *point[1];
  return square(y - 5.1 / (4 * pi * pi) * x * x + 5 / pi * x - 6) + 10 * (1 - 1 / (8 * pi)) * std::cos(x) +
         10;
}

double hartmann6(const SearchPoint& point) {
  constexpr std::array<double, 4> kScale{1.0, 1.2, 3.0, 3.2};
  constexpr double kA[4][6] = {{10, 3, 17, 3.5, 1.7, 8},
                               {0.05, 10, 17, 0.1, 8, 14},
                               {3, 3.5, 1.7, 10, 17, 8},
                               {17, 8, 0.05, 10, 0.1, 14}};
  constexpr double kP[4][6] = {{0.1312, 0.1696, 0.5569, 0.0124, 0.8283, 0.5886},
                               {0.2329, 0.4135, 0.8307, 0.3736, 0.1004, 0.9991},
                               {0.2348, 0.1451, 0.3522, 0.2883, 0.3047, 0.6650},
                               {0.4047, 0.8828, 0.8732, 0.5743, 0.1091, 0.0381}};
  double sum = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    double exponent = 0;
    for (std::size_t j = 0; j < 6; ++j) exponent += kA[i][j] * square(*point[j] - kP[i][j]);
    sum -= kScale[i] * std::exp(-exponent);
  }
  return sum;
}

double rosenbrock(const SearchPoint& point) {
  double sum = 0;
  for (std::size_t i = 0; i + 1 < point.size(); ++i)
    sum += 100 * square(*point[i + 1] - square(*point[i])) + square(1 - *point[i]);
  return sum;
}

double ackley(const SearchPoint& point) {
  double squares = 0, cosines = 0;
  const double n = static_cast<double>(point.size());
  for (const std::optional<double>& x : point) {
    squares += square(*x) / n;
    cosines += std::cos(2 * std::numbers::pi * *x) / n;
  }
  return -20 * std::exp(-0.2 * std::sqrt(squares)) - std::exp(cosines) + 20 + std::numbers::e;
}

// Depends on its settings like the loss of a network: lr, momentum, batch size 16, 32, ..., 512, layers,
// dropout, activation.
double mixed(const SearchPoint& point) {
  constexpr std::array<double, 4> kActivation{0.3, 0, 0.1, 0.5};
  const double lr = *point[0], momentum = *point[1], batch = *point[2] - 2, layers = *point[3],
               dropout = *point[4];
  return square(std::log10(lr / (1 - momentum)) + 1.5 - 0.3 * batch) + 0.02 * square(batch) +
         0.05 * square(layers - 5) + 4 * square(dropout - 0.05 * layers) +
         kActivation[static_cast<std::size_t>(*point[5])];
}

SearchDomain mixed_domain() {
  return {.dimensions = {{.kind = kLogUniform, .low = 1e-5, .high = 1},
                         {.kind = kUniform, .low = 0, .high = 0.99},
                         {.kind = kChoice, .choices = 6, .ordered = true},
                         {.kind = kInteger, .low = 1, .high = 8},
                         {.kind = kUniform, .low = 0, .high = 0.9},
                         {.kind = kChoice, .choices = 4}}};
}

// optimizer (SGD, Adam, RMSprop), lr, momentum of SGD, 1 - beta2 of Adam, layers, and the width of each.
constexpr std::size_t kFirstWidth = 5, kMaxWidths = 4;

double conditional(const SearchPoint& point) {
  const double lr = std::log10(*point[1]), layers = *point[4];
  double sum = 0.1 * square(layers - 3);
  if (*point[0] == 0) sum += 0.3 * square(lr + 1) + 3 * square(*point[2] - 0.9) + 0.05;
  if (*point[0] == 1) sum += 0.3 * square(lr + 3) + 0.2 * square(std::log10(*point[3]) + 3);
  if (*point[0] == 2) sum += 0.3 * square(lr + 3) + 0.3;
  for (std::size_t i = 0; i < static_cast<std::size_t>(layers); ++i)
    sum += 0.1 * square(std::log2(*point[kFirstWidth + i]) - (7 - static_cast<double>(i)));
  return sum;
}

SearchDomain conditional_domain() {
  SearchDomain domain{.dimensions = {{.kind = kChoice, .choices = 3},
                                     {.kind = kLogUniform, .low = 1e-5, .high = 1},
                                     {.kind = kUniform, .low = 0, .high = 0.99},
                                     {.kind = kLogUniform, .low = 1e-4, .high = 0.1},
                                     {.kind = kInteger, .low = 1, .high = kMaxWidths}}};
  domain.dimensions.resize(kFirstWidth + kMaxWidths, {.kind = kLogInteger, .low = 8, .high = 512});
  domain.is_active = [](const SearchPoint& point, std::size_t d) {
    if (d == 2) return point[0] == 0.0;
    if (d == 3) return point[0] == 1.0;
    return d < kFirstWidth || static_cast<double>(d - kFirstWidth) < *point[4];
  };
  return domain;
}

// Zitzler, Deb and Thiele, "Comparison of Multiobjective Evolutionary Algorithms" (2000): the first goal is
// the first of 30 numbers, and the second g h(f, g).
SearchFunction zdt(const char* name, double (*h)(double f, double ratio)) {
  const auto second = [h](const SearchPoint& point) {
    double sum = 0;
    for (const std::optional<double>& x : point) sum += *x;
    const double f = *point[0], g = 1 + 9 * (sum - f) / static_cast<double>(point.size() - 1);
    return g * h(f, f / g);
  };
  return {name, cube(30, 0, 1), 0, [](const SearchPoint& point) { return *point[0]; }, second};
}

}  // namespace

std::span<const SearchFunction> search_functions() {
  static const std::array<SearchFunction, 9> functions{{
      {"Branin",
       {.dimensions = {{.kind = kUniform, .low = -5, .high = 10}, {.kind = kUniform, .low = 0, .high = 15}}},
       0.39788735772973816,
       branin},
      {"Hartmann 6", cube(6, 0, 1), -3.322368011391339, hartmann6},
      {"Rosenbrock 4", cube(4, -5, 10), 0, rosenbrock},
      {"Ackley 5", cube(5, -32.768, 32.768), 0, ackley},
      {"mixed", mixed_domain(), 0, mixed},
      {"conditional", conditional_domain(), 0, conditional},
      zdt("ZDT 1", [](double, double ratio) { return 1 - std::sqrt(ratio); }),
      zdt("ZDT 2", [](double, double ratio) { return 1 - square(ratio); }),
      zdt("ZDT 3",
          [](double f, double ratio) {
            return 1 - std::sqrt(ratio) - ratio * std::sin(10 * std::numbers::pi * f);
          }),
  }};
  return functions;
}

SearchFunction measured_function(const std::string& path) {
  const nlohmann::ordered_json table = parse_json_text(read_file(path), path);
  const std::vector<std::size_t> sizes = table.at("sizes");
  SearchDomain domain;
  for (const std::size_t size : sizes)
    domain.dimensions.push_back({.kind = kChoice, .choices = size, .ordered = true});
  const auto goal = [&](std::size_t number) {
    std::vector<double> values;
    for (const auto& pair : table.at("values")) values.push_back(pair.at(number));
    return [sizes, values](const SearchPoint& point) {
      std::size_t place = 0;
      for (std::size_t d = 0; d < point.size(); ++d)
        place = place * sizes[d] + static_cast<std::size_t>(*point[d]);
      return values.at(place);
    };
  };
  double minimum = std::numeric_limits<double>::infinity();
  for (const auto& pair : table.at("values")) minimum = std::min(minimum, pair.at(0).get<double>());
  return {table.at("name"), domain, minimum, goal(0), goal(1)};
}

}  // namespace sweep
