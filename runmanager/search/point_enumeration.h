// All points of a space that has few.
#pragma once

#include <functional>

#include "runmanager/search/search_space.h"

namespace sweep {

/// Whether there are finitely many values and at most 10^6 combinations of them, with those that do not
/// differ because of conditions or are left out.
bool is_enumerable(const SearchDomain& domain);

/// Calls `use` with each point of an enumerable space once, the last dimension varying fastest; not with
/// those that are left out.
void for_each_point(const SearchDomain& domain, const std::function<void(const SearchPoint& point)>& use);

}  // namespace sweep
