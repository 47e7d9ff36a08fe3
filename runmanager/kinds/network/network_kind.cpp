#include "runmanager/kinds/network/network_kind.h"

#include <algorithm>
#include <utility>

#include "core/base/file.h"
#include "core/data/dataset_summary.h"
#include "core/data/sample_format.h"
#include "core/engine/stages.h"
#include "runmanager/config/metrics.h"
#include "runmanager/config/problems.h"
#include "runmanager/records/checkpoint.h"
#include "runmanager/records/provenance.h"
#include "runmanager/records/run_files.h"
#include "runmanager/records/run_record_json.h"

namespace sweep {

NetworkKind::NetworkKind(NetworkEnvironment environment, nlohmann::ordered_json program)
    : environment_(std::move(environment)), program_(std::move(program)), cache_(environment_.load_dataset) {}

void NetworkKind::load(const Sweep& sweep) {
  error_ = load_datasets(sweep, cache_);
  for (const RunConfig& config : sweep.runs) {
    const auto loaded = cache_.find(config.dataset);
    if (!loaded || find(config.dataset) != nullptr) continue;
    data_.push_back({.spec = config.dataset,
                     .sizes = sizes_of(*loaded),
                     .provenance = dataset_provenance(*loaded),
                     .balance = {},
                     .format = {},
                     .remarks = dataset_remarks(*loaded)});
  }
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

RequestedRun NetworkKind::request(const RunConfig& config) {
  const Data* data = find(config.dataset);
  return requested_run(config, data != nullptr ? &data->provenance : nullptr, weights_,
                       environment_.parse_device);
}

void NetworkKind::check(const Sweep& sweep) {
  if (error_) std::rethrow_exception(error_);
  check_against_data(sweep, [this](const DatasetSpec& spec) { return get(spec).sizes; });
}

void NetworkKind::check(const RunConfig& config, const std::filesystem::path& sweep_file) {
  Problems problems;
  DataCheck(sweep_file, problems).run(config, get(config.dataset).sizes);
  problems.throw_if_any();
}

void NetworkKind::describe(Data& data) {
  if (!data.format.is_null()) return;
  const auto dataset = cache_.find(data.spec);
  data.balance = dataset_balance(*dataset);
  data.format = to_json(*dataset);
}

PreparedRun NetworkKind::prepare(const RunConfig& config) {
  Data& data = get(config.dataset);
  describe(data);
  PreparedRun run;
  run.config = &config;
  run.device = environment_.parse_device(config.device);
  run.unavailable = environment_.unavailable_reason(run.device);
  run.network = std::make_shared<const Network>(config.network, data.sizes.shape);
  const std::size_t parameters = run.network->parameter_count();
  const EngineOptions options = engine_options(config, run.device);
  if (!run.unavailable) run.unavailable = environment_.parallel_missing_reason(*run.network, options);
  if (!run.unavailable) run.devices = training_devices(*run.network, options);
  if (!config.init.empty()) run.weights = load_weights(config.init, *run.network);
  if (shared_) {
    run.network.reset();
    run.weights = {};
  } else {
    run.data = cache_.find(config.dataset);
  }
  run.provenance = program_;
  run.provenance["dataset"] = data.provenance;
  run.provenance["dataset"]["balance"] = data.balance;
  run.provenance["input"] = data.format;
  run.provenance[std::string(kParameters)] = parameters;
  if (!config.init.empty()) {
    run.provenance["init"] = config.init.string();
    run.provenance["init_sha256"] = weights_.get(config.init);
  }
  return run;
}

nlohmann::ordered_json NetworkKind::input_files(const RunConfig& config) {
  nlohmann::ordered_json files = get(config.dataset).provenance.at("files");
  if (!config.init.empty())
    files.push_back({{"path", config.init.string()}, {"sha256", weights_.get(config.init)}});
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

std::size_t NetworkKind::dataset_position(const RunConfig& config) {
  return static_cast<std::size_t>(&get(config.dataset) - data_.data());
}

std::vector<SharedDataset> NetworkKind::share_datasets() {
  for (Data& data : data_) describe(data);  // A later run may need it.
  shared_ = true;
  return cache_.move_to_shared_memory();
}

TrainedRun NetworkWorker::run(const WorkerTask& task, const ReportEvent& report,
                              const TrainerOptions& options) {
  PreparedRun run;
  run.config = &task.config;
  run.device = parse_device(task.record.device);
  run.data = datasets_.at(task.dataset);
  run.network = network_of(task.config, *run.data);
  if (!task.config.init.empty()) run.weights = load_weights(task.config.init, *run.network);
  run.provenance = task.record.provenance;
  run.jobs = task.record.jobs;
  run.until_epoch = task.until_epoch;
  TrainerOptions own = options;
  own.image_grids = &image_grids_;
  return train_run(run, report, own);
}

// The network of the last run again, if this run has the same one, as most runs of a sweep do.
std::shared_ptr<const Network> NetworkWorker::network_of(const RunConfig& config, const Dataset& data) {
  std::string key = config.resolved.at("network").dump() + to_string(data.shape);
  if (key != network_key_) {
    network_ = std::make_shared<const Network>(config.network, data.shape);
    network_key_ = std::move(key);
  }
  return network_;
}

}  // namespace sweep
