// Completes the command line of the program.
#pragma once

#include <string>
#include <vector>

#include "tools/completion/candidate.h"

namespace CLI {
class App;
}

namespace sweep {

/// What the last of `words` can become: commands, options and their values, keys and values of the sweep file
/// on the line, sweeps and runs. `words`: the command line without the program's name, up to the cursor; not
/// empty, since the last one may be. `app`: the program's parser. Reads files, throws nothing for what they
/// hold.
Candidates complete_words(const CLI::App& app, const std::vector<std::string>& words);

}  // namespace sweep
