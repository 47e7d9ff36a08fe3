#include "runmanager/kinds/network/network_kind.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/base/error.h"
#include "core/base/file.h"
#include "core/data/dataset_summary.h"
#include "core/data/readers/input_file.h"
#include "core/data/sample_format.h"
#include "core/engine/stages.h"
#include "runmanager/config/metrics.h"
#include "runmanager/records/checkpoint.h"
#include "runmanager/records/provenance.h"
#include "runmanager/records/run_files.h"
#include "runmanager/records/run_record_json.h"

namespace sweep {
namespace {

// What `read` returns; its error is told with the place of the run's "init".
template <typename Read>
auto at_init(const RunConfig& config, const Read& read) {
  try {
    return read();
  } catch (const DataError& error) {
    const auto place = config.where ? config.where("init") : std::nullopt;
    throw DataError(fmt::format("{}: {}", place.value_or("init"), error.what()));
  }
}

}  // namespace

NetworkKind::NetworkKind(NetworkEnvironment environment, nlohmann::ordered_json program)
    : environment_(std::move(environment)), program_(std::move(program)) {}

NetworkKind::Data& NetworkKind::add(const DatasetSpec& spec) {
  const auto dataset = std::make_shared<const Dataset>(environment_.load_dataset(spec));
  return data_.emplace_back(Data{.spec = spec,
                                 .dataset = dataset,
                                 .sizes = sizes_of(*dataset),
                                 .provenance = dataset_provenance(*dataset),
                                 .balance = {},
                                 .format = {},
                                 .remarks = dataset_remarks(*dataset)});
}

void NetworkKind::load(const Sweep& sweep) {
  std::vector<DatasetSpec> failed;  // a sweep of thousands of runs looks for missing data once
  for (const RunConfig& config : sweep.runs) {
    if (find(config.dataset) != nullptr || std::ranges::find(failed, config.dataset) != failed.end())
      continue;
    try {
      add(config.dataset);
    } catch (const DataError&) {
      failed.push_back(config.dataset);
      if (!error_) error_ = std::current_exception();
    }
  }
}

void NetworkKind::check_loaded() const {
  if (error_) std::rethrow_exception(error_);
}

std::shared_ptr<const Dataset> NetworkKind::dataset(const DatasetSpec& spec) {
  Data* const data = find(spec);
  return (data != nullptr ? *data : add(spec)).dataset;
}

std::vector<std::string> NetworkKind::remarks() const {
  std::vector<std::string> all;
  for (const Data& data : data_) all.insert(all.end(), data.remarks.begin(), data.remarks.end());
  return all;
}

NetworkKind::Data* NetworkKind::find(const DatasetSpec& spec) {
  const auto found = std::ranges::find(data_, spec, &Data::spec);
  return found == data_.end() ? nullptr : &*found;
}

NetworkKind::Data& NetworkKind::get(const DatasetSpec& spec) {
  if (Data* data = find(spec)) return *data;
  std::rethrow_exception(error_);
}

const std::string& NetworkKind::weights_digest(const RunConfig& config) {
  std::string& digest = weights_[config.init.string()];
  if (digest.empty()) digest = at_init(config, [&] { return file_sha256(config.init); });
  return digest;
}

void NetworkKind::check_weights(const RunConfig& config, const Shape& shape) {
  if (config.init.empty()) return;
  std::string key = config.init.string() + config.resolved.at("network").dump() + to_string(shape);
  if (good_weights_.contains(key)) return;
  at_init(config, [&] { return load_weights(config.init, Network(config.network, shape)); });
  good_weights_.insert(std::move(key));
}

RunIdentity NetworkKind::identity(const RunConfig& config) {
  nlohmann::ordered_json provenance = {{"numerics", kNumericsVersion}};
  if (!config.init.empty()) provenance["init_sha256"] = weights_digest(config);
  if (const Data* data = find(config.dataset)) provenance["dataset"] = data->provenance;
  return identity_of(config.resolved, environment_.parse_device(config.device).name(), provenance);
}

void NetworkKind::check(const Sweep& sweep) {
  check_loaded();
  check_against_data(sweep, [this](const DatasetSpec& spec) { return get(spec).sizes; });
}

void NetworkKind::check(const RunConfig& config, const std::filesystem::path& sweep_file) {
  check_against_data(config, sweep_file, get(config.dataset).sizes);
}

void NetworkKind::describe(Data& data) {
  if (!data.format.is_null()) return;
  data.balance = dataset_balance(*data.dataset);
  data.format = to_json(*data.dataset);
}

RunNeeds NetworkKind::needs(const RunConfig& config) {
  Data& data = get(config.dataset);
  describe(data);
  RunNeeds run;
  run.dataset = static_cast<std::size_t>(&data - data_.data());
  run.work_per_epoch = static_cast<double>(data.sizes.train);
  run.device = environment_.parse_device(config.device);
  run.unavailable = environment_.unavailable_reason(run.device);
  const Network network(config.network, data.sizes.shape);
  const EngineOptions options = engine_options(config, run.device);
  if (!run.unavailable) run.unavailable = environment_.parallel_missing_reason(network, options);
  if (!run.unavailable) run.devices = training_devices(network, options);
  run.provenance = program_;
  run.provenance["dataset"] = data.provenance;
  run.provenance["dataset"]["balance"] = data.balance;
  run.provenance["input"] = data.format;
  run.provenance[std::string(kParameters)] = network.parameter_count();
  check_weights(config, data.sizes.shape);
  if (!config.init.empty()) {
    run.provenance["init"] = config.init.string();
    run.provenance["init_sha256"] = weights_digest(config);
  }
  return run;
}

nlohmann::ordered_json NetworkKind::input_files(const RunConfig& config) {
  nlohmann::ordered_json files = get(config.dataset).provenance.at("files");
  if (!config.init.empty())
    files.push_back({{"path", config.init.string()}, {"sha256", weights_digest(config)}});
  return files;
}

// A batch may be running; its checkpoint is that of the epoch before it.
double NetworkKind::stop_seconds(const RunConfig&) const { return 4; }

std::optional<RunRecord> NetworkKind::state_of(const std::filesystem::path& run) const {
  return whole_record(read_checkpoint_record, run / kCheckpointFile);
}

std::optional<RunRecord> NetworkKind::start_of(const std::filesystem::path& run) const {
  return whole_record(read_checkpoint_record, run / kStartFile);
}

void NetworkKind::keep_start(const std::filesystem::path& parent, const std::filesystem::path& run) const {
  prepare_run_directory(run);
  // Its content first: a name of half a file would be taken for a start.
  const std::filesystem::path checkpoint = parent / kCheckpointFile;
  sync_files({&checkpoint, 1});
  link_file_atomically(checkpoint, run / kStartFile);
  sync_directory(run);
  sync_directory(run.parent_path());
}

std::vector<std::shared_ptr<const Dataset>> NetworkKind::datasets() {
  std::vector<std::shared_ptr<const Dataset>> all;
  for (const Data& data : data_) all.push_back(data.dataset);
  return all;
}

std::vector<SharedDataset> NetworkKind::share_datasets() {
  std::vector<SharedDataset> shared;
  for (Data& data : data_) {
    describe(data);  // A later run may need it.
    shared.emplace_back(*data.dataset);
    data.dataset.reset();  // One data set at a time is in memory twice.
  }
  return shared;
}

KindWorker network_worker(std::vector<std::shared_ptr<const Dataset>> datasets) {
  std::map<std::string, std::string> digests;  // SHA-256 of files, by path, size and time
  return [datasets = std::move(datasets), digests](const WorkerTask& task, const ReportEvent& report,
                                                   const TrainerOptions& options) mutable {
    PreparedRun run;
    run.config = &task.config;
    run.device = parse_device(task.record.device);
    run.data = datasets.at(task.dataset);
    run.network = std::make_shared<const Network>(task.config.network, run.data->shape);
    if (const std::filesystem::path& init = task.config.init; !init.empty()) {
      run.weights = load_weights(init, *run.network);
      // Compared after they were read, so that no change is overlooked.
      std::string& digest =
          digests[fmt::format("{} {} {}", init.string(), std::filesystem::file_size(init),
                              std::filesystem::last_write_time(init).time_since_epoch().count())];
      if (digest.empty()) digest = file_sha256(init);
      if (task.record.provenance.value("init_sha256", "") != digest)
        throw DataError(init.string() + ": was replaced after the sweep had begun");
    }
    run.provenance = task.record.provenance;
    run.jobs = task.record.jobs;
    run.until_epoch = task.until_epoch;
    return train_run(run, report, options);
  };
}

}  // namespace sweep
