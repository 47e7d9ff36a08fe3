// Names of runs, which are names of directories on any file system.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runmanager/config/params.h"

namespace sweep {

/// Keys and values as "lr=0.01,batch_size=1000"; "run" if there are none. Letters, digits and . _ - + stay;
/// every other byte, and dots that would make "..", becomes %XX. Lists and objects are a few words:
/// "dataset.resize=32x32", "dataset.augment=random_crop4+horizontal_flip"; "none" if they are empty. Values
/// of more than 48 characters and names of more than 200 are cut and end in "~" and a hash of the whole.
std::string run_name(const Params& params);

/// Returns the run_name() of each, without keys whose value is the same in all of them: TensorBoard cuts long
/// names, so runs have to differ early. If all keys are constant, as with a single run, the names have all.
/// If two names would be the same on a file system that ignores case, "~" and a number or hash are added.
/// The same list always gives the same names.
std::vector<std::string> run_names(const std::vector<Params>& runs);

/// 16 digits: FNV-1a of 64 bits, the same on every machine, which std::hash need not be.
std::string hash_of(std::string_view text);

}  // namespace sweep
