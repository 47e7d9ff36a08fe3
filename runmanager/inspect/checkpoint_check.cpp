#include "runmanager/inspect/file_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "core/base/error.h"
#include "core/data/safetensors.h"
#include "core/data/sample_format.h"
#include "core/network/network.h"
#include "runmanager/config/run_settings.h"
#include "runmanager/records/checkpoint.h"

namespace sweep {
namespace {

using Json = nlohmann::ordered_json;

// The run's network; none if the record does not have all that it takes.
std::optional<Network> recorded_network(const RunRecord& record) try {
  const SampleFormat samples = sample_format_from_json(record.provenance.at("input"), "input");
  return Network(network_of(record.config.at("network")), samples.shape);
} catch (const ConfigError&) {
  return std::nullopt;
} catch (const DataError&) {
  return std::nullopt;
} catch (const Json::exception&) {
  return std::nullopt;
}

// A note, not a problem: the weights of a run that diverged are not finite.
void count_non_finite(const TensorFile& file, FileFinding& finding) {
  std::size_t count = 0;
  for (const NamedTensor& tensor : file.tensors) {
    count += static_cast<std::size_t>(std::count_if(tensor.values.begin(), tensor.values.end(),
                                                    [](float value) { return !std::isfinite(value); }));
  }
  if (count > 0) finding.notes.push_back(fmt::format("{} of its values are not finite", count));
}

// Checks that the checkpoint of a completed run was written after its last epoch.
void check_epoch(std::optional<int> epoch, const RunRecord& record, FileFinding& finding) {
  if (!epoch || record.status != RunStatus::kCompleted || record.epochs.empty()) return;
  const int last = record.epochs.back().epoch;
  if (*epoch == last) return;
  finding.problems.push_back(
      fmt::format("is of epoch {}, but the run was completed with epoch {}", *epoch, last));
}

}  // namespace

std::optional<int> check_checkpoint(const std::filesystem::path& path, const RunRecord* record,
                                    FileFinding& finding) {
  TensorFile file;
  try {
    file = read_safetensors(path);
    verify_checksums(file);
  } catch (const DataError& error) {
    finding.problems.push_back(without_path(error.what(), path) + "; the weights are lost");
    return std::nullopt;
  }
  if (file.tensors.empty()) finding.problems.emplace_back("holds no weights");
  const std::optional<int> epoch = last_epoch_of(file);
  if (record != nullptr) check_epoch(epoch, *record, finding);
  if (const auto network = record != nullptr ? recorded_network(*record) : std::nullopt)
    std::ranges::move(misfits(file, *network, FileUse::kCheckpoint), std::back_inserter(finding.problems));
  count_non_finite(file, finding);
  return epoch;
}

}  // namespace sweep
