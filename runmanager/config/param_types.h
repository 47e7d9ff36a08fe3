// One type for each swept key, as TensorBoard needs it.
#pragma once

#include <vector>

#include "runmanager/config/params.h"

namespace sweep {

/// Gives each key one type in all `runs`: integers next to fractions become doubles, any other mix becomes
/// text.
void unify_types(const std::vector<Params*>& runs);

}  // namespace sweep
