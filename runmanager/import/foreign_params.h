// The hyperparameters of runs that other programs have done, from names and texts.
#pragma once

#include <string_view>
#include <vector>

#include "runmanager/config/params.h"

namespace sweep {

/// Finds "key=value" in the name of a run: "lr=0.1 batch_size=100", also with commas, hyphens, underscores or
/// semicolons between them, and inside of other text, as in "Nov24_host-Run(lr=0.1, batch_size=100)".
Params params_of_name(std::string_view name);

/// The value that a text means: true or false, a number, or the text itself.
ParamValue param_of_text(std::string_view text);

/// Gives each key one type in all runs, where whole numbers are integers if all of its values are.
void unify_foreign_types(const std::vector<Params*>& runs);

}  // namespace sweep
