#include "tools/print_json.h"

#include <iostream>

namespace sweep {

void print_json(const nlohmann::ordered_json& json) {
  std::cout << json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) << '\n';
}

}  // namespace sweep
