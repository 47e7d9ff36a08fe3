// Functions that searches are compared on; search_quality.py has the same.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "runmanager/search/search_space.h"

namespace sweep {

struct SearchFunction {
  std::string name;
  SearchDomain domain;
  double minimum;                                           // of the function over the domain
  std::function<double(const SearchPoint& point)> value{};  // pure
};

/// Branin, Hartmann 6, Rosenbrock 4, Ackley 5, one of mixed kinds of dimensions, one with conditions.
std::span<const SearchFunction> search_functions();

}  // namespace sweep
