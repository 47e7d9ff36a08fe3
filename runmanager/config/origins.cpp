#include "runmanager/config/origins.h"

#include "runmanager/text/json_document.h"

namespace sweep {

std::optional<std::string> Origins::find(std::string_view path) const {
  const std::string_view top = path.substr(0, path.find('.'));
  const Locations* locations = common_.get();
  for (const Part& part : parts_) {
    if (part.first == top) locations = part.second.get();
  }
  if (locations == nullptr) return std::nullopt;
  const auto found = locations->find(path);
  return found == locations->end() ? std::nullopt : std::optional(to_string(*found->second));
}

}  // namespace sweep
