#include "runmanager/plan/plan.h"

#include <algorithm>
#include <map>
#include <queue>
#include <unordered_map>
#include <utility>

#include "core/data/data_loader.h"
#include "core/engine/engine.h"
#include "core/engine/stages.h"
#include "runmanager/sweepfile/settings/settings.h"

namespace sweep {
namespace {

constexpr std::uint64_t kFloat = sizeof(float);

// Measured on Debian 12, x86-64: VmHWM of a worker that has trained a network of ten weights.
constexpr std::uint64_t kProcess = std::uint64_t{20} << 20;

// Floats in a checkpoint: parameters, running statistics, and the optimizer's arrays.
std::uint64_t checkpoint_floats(const RunConfig& run, const Network& network) {
  const OptimizerOptions optimizer = scheduled_optimizer(run.optimizer, run.schedule);
  return network.parameter_count() * (1 + state_names(optimizer).size()) + network.buffer_count();
}

// Samples whose outputs are kept for the pictures at the end of a run.
std::size_t shown_count(const DataSizes& data) {
  if (data.validation > 0) return data.validation;
  return data.test > 0 ? data.test : data.train;
}

// Nothing for devices other than the CPU: their memory is not known before the run. `threads`: CPU threads of
// the run, >= 1. Throws as make_engine().
std::optional<MemoryEstimate> estimate_memory(const RunConfig& run, const Network& network,
                                              const Device& device, const DataSizes& data, int threads) {
  EngineOptions options = engine_options(run, device);
  options.threads = threads;
  const std::optional<std::size_t> engine = engine_memory(network, options);
  if (!engine) return std::nullopt;
  const std::size_t outputs = element_count(network.output());
  const std::size_t sample_bytes =
      element_count(data.shape) *
      (data.bytes > (data.train + data.validation + data.test) * element_count(data.shape) * 2 ? kFloat : 1);
  const std::uint64_t parameters = network.parameter_count() * kFloat;
  const std::uint64_t checkpoint = checkpoint_floats(run, network) * kFloat;
  // What histograms count is gone before a checkpoint is written, from a copy.
  const std::uint64_t copies = std::max(run.log.histograms ? 2 * parameters : 0, checkpoint);
  // Outputs, and their probabilities class by class.
  const std::uint64_t kept =
      run.log.predictions && data.numbers == 0 ? 3 * shown_count(data) * outputs * kFloat : 0;
  return MemoryEstimate{.process = kProcess,
                        .engine = *engine,
                        .loader = loader_memory(data.train, sample_bytes, loader_options(run)),
                        .results = copies + kept,
                        .data = data.bytes};
}

DiskEstimate estimate_disk(const RunConfig& run, const Network& network, const DataSizes& data) {
  // Measured: bytes of what is written per run and per epoch, without what grows with the network.
  constexpr std::uint64_t kRecords = 14000, kEpochRecord = 500, kEpochScalars = 1100, kGraphLayer = 700;
  constexpr std::uint64_t kHistogram = 1500, kCurve = 4000;
  const std::size_t tensors = network.parameters().size();
  DiskEstimate disk;
  const std::uint64_t checkpoint =
      checkpoint_floats(run, network) * kFloat + 200 * (tensors + network.buffers().size());
  disk.once = kRecords + checkpoint * (keeps_best(run) ? 2 : 1);
  if (run.log.graph) disk.once += kGraphLayer * network.layers().size();
  const std::size_t pixels = element_count(data.shape);
  if (run.log.images > 0 && data.shape.size() == 3)
    disk.once +=
        std::min<std::size_t>(static_cast<std::size_t>(run.log.images), run.batch_size) * pixels * 6 / 10;
  if (run.log.predictions && data.numbers == 0) disk.once += kCurve * data.classes + 64 * pixels;
  disk.per_epoch = kEpochRecord + kEpochScalars + (run.log.histograms ? 2 * tensors * kHistogram : 0);
  if (run.log.batches > 0)
    disk.per_epoch += 130 * (data.train / run.batch_size / static_cast<std::size_t>(run.log.batches));
  return disk;
}

// Makes the costs of each shape once. A sweep has up to 100,000 runs, and few shapes.
class Shapes {
 public:
  Shapes(const std::function<DataSizes(const DatasetSpec&)>& sizes_of, int threads)
      : sizes_of_(sizes_of), threads_(threads) {}

  std::shared_ptr<RunCost> cost_of(const RunConfig& run, const Device& device) {
    const std::size_t data = data_of(run.dataset);
    key_.clear();
    const auto append = [this](const auto& value) {
      key_.append(reinterpret_cast<const char*>(&value), sizeof value);
    };
    append(data);
    append(device.index);
    key_ += device.name();
    append(keeps_best(run));
    append(run.clip_norm > 0);
    // Runs of a sweep share the values that they have in common.
    static constexpr std::string_view kNotOfShape[] = {"lr",        "seed",      "repeat", "epochs",
                                                       "clip_norm", "stop",      "init",   "evaluate_first",
                                                       "device",    "checkpoint"};
    for (const Setting& setting : top_level_settings()) {
      if (setting.sweepable && std::ranges::find(kNotOfShape, setting.name) == std::end(kNotOfShape))
        append(run.resolved.find(setting.name).get());
    }
    std::shared_ptr<RunCost>& cost = costs_[key_];
    if (cost == nullptr) cost = make_cost(run, device, data);
    return cost;
  }

 private:
  std::size_t data_of(const DatasetSpec& spec) {
    const auto found = std::ranges::find(datasets_, spec, &std::pair<DatasetSpec, DataSizes>::first);
    if (found != datasets_.end()) return static_cast<std::size_t>(found - datasets_.begin());
    datasets_.emplace_back(spec, sizes_of_(spec));
    return datasets_.size() - 1;
  }

  std::shared_ptr<RunCost> make_cost(const RunConfig& run, const Device& device, std::size_t data_set) const {
    const DataSizes& data = datasets_[data_set].second;
    const Network network(run.network, data.shape);
    RunCost cost{.data_set = data_set,
                 .train_samples = data.train,
                 .steps_per_epoch = (data.train + run.batch_size - 1) / run.batch_size,
                 .parameter_count = network.parameter_count(),
                 .training_flops = network.training_flops() * static_cast<double>(data.train),
                 .memory = estimate_memory(run, network, device, data, threads_),
                 .disk = estimate_disk(run, network, data),
                 .unavailable = parallel_unavailable_reason(network, engine_options(run, device)),
                 .times = {}};
    return std::make_shared<RunCost>(cost);
  }

  const std::function<DataSizes(const DatasetSpec&)>& sizes_of_;
  const int threads_;
  std::vector<std::pair<DatasetSpec, DataSizes>> datasets_;
  std::unordered_map<std::string, std::shared_ptr<RunCost>> costs_;
  std::string key_;
};

}  // namespace

std::size_t PlannedRun::epochs_left() const {
  const auto epochs = static_cast<std::size_t>(config->epochs);
  return trains() ? epochs - std::min(epochs, trained_epochs) : 0;
}

std::uint64_t PlannedRun::disk_bytes() const {
  return trains() ? cost->disk.of_epochs(static_cast<std::size_t>(config->epochs)) : 0;
}

std::optional<double> PlannedRun::seconds() const {
  if (!trains()) return 0;
  if (!cost->times) return std::nullopt;
  return cost->times->of_epochs(epochs_left());
}

std::optional<std::uint64_t> SweepPlan::memory_bytes() const {
  std::vector<std::uint64_t> own;
  std::map<std::size_t, std::uint64_t> data;
  for (const PlannedRun& run : runs) {
    if (!run.trains()) continue;
    if (!run.cost->memory) return std::nullopt;
    own.push_back(run.cost->memory->own());
    data[run.cost->data_set] = run.cost->memory->data;
  }
  if (own.empty()) return std::nullopt;
  const std::size_t at_once = std::min(own.size(), static_cast<std::size_t>(jobs));
  std::ranges::sort(own, std::greater<>());
  std::uint64_t bytes = 0;
  for (const auto& [number, of_data] : data) bytes += of_data;
  for (std::size_t i = 0; i < at_once; ++i) bytes += own[i];
  return bytes;
}

std::uint64_t SweepPlan::disk_bytes() const {
  std::uint64_t bytes = 0;
  for (const PlannedRun& run : runs) bytes += run.disk_bytes();
  return bytes;
}

// Each run starts, in order, on the slot that is free first.
std::optional<double> SweepPlan::seconds() const {
  std::priority_queue<double, std::vector<double>, std::greater<>> ends;
  for (int i = 0; i < jobs; ++i) ends.push(0);
  double last = 0;
  for (const PlannedRun& run : runs) {
    if (!run.trains()) continue;
    const std::optional<double> seconds = run.seconds();
    if (!seconds) return std::nullopt;
    const double end = ends.top() + *seconds;
    ends.pop();
    ends.push(end);
    last = std::max(last, end);
  }
  return last;
}

void plan_runs(SweepPlan& plan, const std::function<DataSizes(const DatasetSpec&)>& sizes_of,
               const std::function<std::optional<std::string>(const Device&)>& unavailable) {
  Shapes shapes(sizes_of, plan.threads);
  // By their names in the file, with why they cannot be used; null: they can.
  std::map<std::string, std::pair<Device, std::shared_ptr<const std::string>>> devices;
  plan.runs.reserve(plan.sweep->runs.size());
  for (const RunConfig& run : plan.sweep->runs) {
    const auto [known, is_new] = devices.try_emplace(run.device);
    auto& [device, reason] = known->second;
    if (is_new) {
      device = parse_device(run.device);
      if (auto text = unavailable(device)) reason = std::make_shared<const std::string>(std::move(*text));
    }
    PlannedRun planned{.config = &run, .device = device.name(), .skip = reason};
    planned.cost = shapes.cost_of(run, device);
    if (planned.skip == nullptr && planned.cost->unavailable)
      planned.skip = {planned.cost, &*planned.cost->unavailable};
    plan.runs.push_back(std::move(planned));
  }
}

}  // namespace sweep
