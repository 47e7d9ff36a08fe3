#include "runmanager/records/identity.h"

namespace sweep {
namespace {

using Json = nlohmann::ordered_json;

// The digests of the data set's files; null if the provenance has none.
Json data_digests(const Json& provenance) {
  const auto dataset = provenance.find("dataset");
  if (dataset == provenance.end() || !dataset->is_object() || !dataset->contains("files")) return nullptr;
  Json digests = Json::array();
  for (const Json& file : (*dataset)["files"]) digests.push_back(file.value("sha256", Json()));
  return digests;
}

}  // namespace

bool same_identity(const RunRecord& old, const RunConfig& config, const Json& provenance) {
  if (!old.provenance.is_object() || !provenance.is_object()) return false;
  const Json old_data = data_digests(old.provenance), data = data_digests(provenance);
  // Compared as text, because nlohmann::json takes 1 and 1.0 for equal.
  return old.name == config.name && to_json(old.params).dump() == to_json(config.params).dump() &&
         old.config.dump() == config.resolved.dump() &&
         old.provenance.value("numerics", Json()) == provenance.value("numerics", Json()) &&
         old.provenance.value("init_sha256", Json()) == provenance.value("init_sha256", Json()) &&
         (old_data.is_null() || data.is_null() || old_data == data);
}

}  // namespace sweep
