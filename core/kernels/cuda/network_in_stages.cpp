#include "core/kernels/cuda/network_in_stages.h"

#include <algorithm>
#include <numeric>

#include "core/base/error.h"
#include "core/engine/engine_checks.h"
#include "core/kernels/cuda/runtime/cuda_devices.h"

namespace sweep::cuda {
namespace {

// Those of `all` that compute anything; the stage before them has the layers of the others.
std::vector<Stage> used_stages(const Network& network, const std::vector<Stage>& all) {
  std::vector<std::size_t> first_layers;
  first_layers.reserve(all.size());
  for (const Stage& stage : all) first_layers.push_back(stage.first_layer);
  const std::vector<bool> used = stages_with_nodes(network, first_layers);
  std::vector<Stage> stages;
  for (std::size_t s = 0; s < all.size(); ++s) {
    if (used[s]) stages.push_back(all[s]);
  }
  stages.front().first_layer = 0;
  return stages;
}

// The device of each stage, from 0 in order of first appearance.
std::vector<std::size_t> numbered_devices(const std::vector<Stage>& stages) {
  std::vector<Device> known;
  std::vector<std::size_t> numbers;
  numbers.reserve(stages.size());
  for (const Stage& stage : stages) numbers.push_back(place_of(stage.device, known));
  return numbers;
}

// With different GPUs, layers might be fused in different ways.
void require_equal_devices(const std::vector<Stage>& stages) {
  const std::vector<DeviceInfo> devices = list_cuda_devices();
  const auto description = [&](const Stage& stage) {
    return devices.at(static_cast<std::size_t>(stage.device.index)).description;
  };
  for (const Stage& stage : stages) {
    if (description(stage) == description(stages.front())) continue;
    throw DeviceError(stage.device.name() + " is another GPU than " + stages.front().device.name() + ", " +
                      description(stage) + " and not " + description(stages.front()) +
                      ", with which it is to train; want GPUs of one model");
  }
}

// NVIDIA's libraries expect arrays that begin at multiples of 256 bytes: so micro-batches have to, if
// libraries are used.
std::size_t micro_batch_unit(const Network& network, const UsedLibraries& libraries) {
  constexpr std::size_t kAlignedFloats = 64;
  if (libraries.empty()) return 1;
  std::size_t unit = kAlignedFloats / std::gcd(kAlignedFloats, element_count(network.input()));
  for (const Layer& layer : network.layers())
    unit = std::max(unit, kAlignedFloats / std::gcd(kAlignedFloats, element_count(layer.output)));
  return unit;
}

std::size_t micro_batches_of(const EngineOptions& options) {
  return options.parallel.pipeline ? static_cast<std::size_t>(options.parallel.pipeline->micro_batches) : 1;
}

// A pipeline's shares are under way at the same time, and count as micro-batches; those that wait for each
// other's sums have to be.
RoundOptions round_options(const Network& network, const EngineOptions& options, const BatchShares& shares) {
  const std::size_t micro_batches = micro_batches_of(options);
  const auto most = static_cast<std::size_t>(std::max(1, shares.most));
  const auto layers = network.layers();
  const bool normalizes = std::any_of(layers.begin(), layers.end(),
                                      [](const Layer& layer) { return layer.is<layers::BatchNorm2d>(); });
  return {.shares = shares,
          .together = shares.count > 1 && (micro_batches > 1 || normalizes),
          .micro_batches = (micro_batches + most - 1) / most};
}

}  // namespace

NetworkInStages::NetworkInStages(const Network& network, const EngineOptions& options,
                                 const std::vector<Stage>& all, const BatchShares& shares,
                                 std::size_t fed_samples)
    : network_(network), options_(options), rounds_of_(round_options(network, options, shares)) {
  if (options.parallel.pipeline) order_ = options.parallel.pipeline->schedule;
  const std::vector<Stage> stages = used_stages(network_, all);
  require_equal_devices(stages);
  devices_ = numbered_devices(stages);
  make_stages(stages, fed_samples);
  rounds_of_.unit = micro_batch_unit(network_, libraries_);
  std::vector<std::vector<bool>> whole_batch, none;
  for (const auto& stage : stages_) {
    whole_batch.push_back(stage->whole_batch_ops());
    none.emplace_back(whole_batch.back().size());
  }
  plans_.push_back({StageSchedule(none, devices_), {}});
  plans_.push_back({StageSchedule(whole_batch, devices_), {}});
}

NetworkInStages::~NetworkInStages() {
  try {
    wait();
  } catch (const std::exception&) {
    // The call that met the error has reported it. A stage's memory may be read by another one's stream.
    abort();
    wait_for_streams();
  }
  leave();
}

std::size_t NetworkInStages::device_count() const {
  return *std::max_element(devices_.begin(), devices_.end()) + 1;
}

// Stages on one device have one group: what several had under way could wait for each other.
void NetworkInStages::join(std::span<const DeviceGroupId> groups, Communicator& ranks,
                           const std::vector<int>& first_shares) {
  for (std::size_t s = 0; s < stages_.size(); ++s) {
    stages_[s]->runner().select();
    const std::size_t device = devices_[s];
    if (device == groups_.size())
      groups_.push_back(make_device_group(groups[device], ranks.rank(), ranks.size(), ranks.deadline(),
                                          [&ranks] { ranks.check(); }));
    stages_[s]->join(*groups_[device], first_shares);
  }
}

bool NetworkInStages::prepare(const Batch& batch) {
  bool is_resident = true;
  for (const auto& stage : stages_) {
    for (const StageRound& round : rounds(batch.size())) stage->prepare(round);
    BatchFeed& feed = stage->runner().feed();
    Stream& stream = stage->runner().stream();
    if (feed.make_resident(stream, batch.set)) continue;
    feed.allocate_staging(stream, batch);
    is_resident = false;
  }
  return is_resident;
}

bool NetworkInStages::is_resident(const Batch& batch) const {
  return std::all_of(stages_.begin(), stages_.end(),
                     [&](const auto& stage) { return stage->runner().feed().is_resident(batch.set); });
}

void NetworkInStages::keep(const std::shared_ptr<const TensorDataset>& set) {
  for (const auto& stage : stages_) {
    BatchFeed& feed = stage->runner().feed();
    if (feed.is_resident(set)) feed.make_resident(stage->runner().stream(), set);
  }
}

// Kernels are loaded when they are first launched, which may wait for the device in the driver. So the host
// waits for the exchanges of the first batch of a size: later ones load no kernel.
void NetworkInStages::train(const Batch& own, std::size_t samples, const StepInput& input) {
  feed(own, input);
  const std::vector<StageRound>& all = rounds(samples);
  const bool waits = !groups_.empty() && trained_.insert(samples).second;
  for (const StageRound& round : all) {
    run(Task::kTrain, round, waits);
    for (const auto& stage : stages_) stage->finish_round();
  }
  // The last stage is done first.
  for (auto stage = stages_.rbegin(); stage != stages_.rend(); ++stage) (*stage)->exchange_gradients();
  for (const auto& stage : stages_) stage->sum_squares();
  for (const auto& stage : stages_) stage->take_step();
}

void NetworkInStages::evaluate(Task task, const Batch& rows, const StepInput& input) {
  feed(rows, input);
  evaluated_ = evaluation_round(rows.size(), rounds_of_);
  run(task, evaluated_, false);
}

// The arrays of a stage are a range of the whole network's.
std::vector<float> NetworkInStages::array(const EngineArray& which) {
  std::vector<float> all(array_size(which, network_));
  for (const auto& stage : stages_) {
    const ArrayRange& range = stage->program().array_range(which);
    const std::vector<float> own = stage->runner().array(which);
    std::copy(own.begin() + static_cast<std::ptrdiff_t>(range.first - range.base), own.end(),
              all.begin() + static_cast<std::ptrdiff_t>(range.first));
  }
  return all;
}

void NetworkInStages::set_array(const EngineArray& which, std::span<const float> values) {
  for (const auto& stage : stages_) {
    const ArrayRange& range = stage->program().array_range(which);
    stage->runner().set_array(which, values.subspan(range.base, range.end - range.base));
  }
}

void NetworkInStages::wait() {
  for (const auto& stage : stages_) stage->wait();
}

void NetworkInStages::abort() noexcept {
  for (const auto& group : groups_) group->abort();
}

double NetworkInStages::take_exchange_seconds() {
  double longest = 0;
  for (const auto& stage : stages_) longest = std::max(longest, stage->take_exchange_seconds());
  return longest;
}

void NetworkInStages::make_stages(const std::vector<Stage>& stages, std::size_t fed_samples) {
  ProgramOptions program = program_options(options_, stages.front().device.index, rounds_of_.shares);
  program.augment = {};  // of batches that the host has changed
  program.shares_together = rounds_of_.together;
  use_device(program.device);
  program.stage.in_micro_batches = rounds_of_.micro_batches > 1;
  program.stage.first_layers.clear();
  for (const Stage& stage : stages) program.stage.first_layers.push_back(stage.first_layer);
  for (std::size_t s = 0; s < stages.size(); ++s) {
    program.device = stages[s].device.index;
    program.stage.index = s;
    const FedArrays fed{.samples = s == 0, .targets = s + 1 == stages.size()};
    stages_.push_back(
        std::make_unique<PipelineStage>(network_, program, fed_samples, options_.placement, fed));
    const UsedLibraries& used = stages_.back()->program().libraries();
    libraries_.insert(used.begin(), used.end());
  }
  PipelineStage::link(stages_);
  PipelineStage::join_optimizers(stages_);
}

const std::vector<StageRound>& NetworkInStages::rounds(std::size_t samples) {
  auto found = rounds_.find(samples);
  if (found == rounds_.end()) found = rounds_.emplace(samples, training_rounds(samples, rounds_of_)).first;
  return found->second;
}

void NetworkInStages::feed(const Batch& batch, const StepInput& input) {
  for (const auto& stage : stages_) stage->feed(batch, input);
}

void NetworkInStages::run(Task task, const StageRound& round, bool waits) {
  const bool training = task == Task::kTrain;
  const bool waits_for_all = training && (round.micro_batches.size() > 1 || rounds_of_.shares.count > 1);
  Plan& plan = plans_[waits_for_all ? 1 : 0];
  for (const auto& stage : stages_) stage->begin(task, round, waits);
  const std::pair key(round.micro_batches.size(), training);
  auto found = plan.tasks.find(key);
  if (found == plan.tasks.end())
    found = plan.tasks.emplace(key, plan.schedule.tasks(round.micro_batches.size(), order_, training)).first;
  for (const SegmentTask& each : found->second)
    stages_[plan.schedule.segments()[each.segment].stage]->run(plan.schedule, each);
}

void NetworkInStages::wait_for_streams() noexcept {
  for (const auto& stage : stages_) {
    try {
      stage->runner().select();
      stage->runner().stream().wait();
    } catch (const std::exception&) {
      // As above.
    }
  }
}

// All ranks in the same order, each device as the current one.
void NetworkInStages::leave() noexcept {
  for (std::size_t s = 0; s < stages_.size(); ++s) {
    if (devices_[s] >= groups_.size() || groups_[devices_[s]] == nullptr) continue;
    try {
      stages_[s]->runner().select();
    } catch (const std::exception&) {
      // As above.
    }
    groups_[devices_[s]].reset();
  }
}

}  // namespace sweep::cuda
