#include "tools/print_json.h"

#include <iostream>

#include "core/base/printable.h"
#include "runmanager/text/json_output.h"

namespace sweep {

void print_json(const nlohmann::ordered_json& json) { std::cout << printable(json_text(json)); }

}  // namespace sweep
