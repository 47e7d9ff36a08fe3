#include "core/json/json_path.h"

#include <nlohmann/json.hpp>

namespace sweep {

const nlohmann::ordered_json* find_at(const nlohmann::ordered_json& root, std::string_view path) {
  const nlohmann::ordered_json* value = &root;
  while (!path.empty()) {
    if (!value->is_object()) return nullptr;
    const std::size_t dot = path.find('.');
    const auto member = value->find(path.substr(0, dot));
    if (member == value->end()) return nullptr;
    value = &*member;
    path = dot == std::string_view::npos ? std::string_view() : path.substr(dot + 1);
  }
  return value;
}

}  // namespace sweep
