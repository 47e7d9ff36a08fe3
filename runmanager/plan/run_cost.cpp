#include "runmanager/plan/plan.h"

#include <algorithm>
#include <variant>

#include "core/data/data_loader.h"
#include "core/engine/engine.h"
#include "runmanager/training/prepared_run.h"

namespace sweep {
namespace {

constexpr std::uint64_t kFloat = sizeof(float);

// Measured on Debian 12, x86-64: VmHWM of a worker that has trained a network of ten weights.
constexpr std::uint64_t kProcess = std::uint64_t{20} << 20;

std::uint64_t bytes_of_samples(const Subset& samples) {
  const std::uint64_t size = samples.set == nullptr ? 0 : samples.set->size();
  if (size == 0) return 0;
  const auto array_bytes = [](const auto& array) {
    return std::visit([](const auto& values) { return values.size() * sizeof(*values.data()); }, array);
  };
  const std::uint64_t all = array_bytes(samples.set->samples) + array_bytes(samples.set->targets);
  return all * samples.count / size;
}

// Floats in a checkpoint: parameters, running statistics, and the optimizer's arrays.
std::uint64_t checkpoint_floats(const RunConfig& run, const Network& network) {
  const OptimizerOptions optimizer = scheduled_optimizer(run.optimizer, run.schedule);
  return network.parameter_count() * (1 + state_names(optimizer).size()) + network.buffer_count();
}

// Samples whose outputs are kept for the pictures at the end of a run.
std::size_t shown_count(const DataCost& data) {
  if (data.sizes.validation > 0) return data.sizes.validation;
  return data.test > 0 ? data.test : data.sizes.train;
}

}  // namespace

DataCost data_cost(const Dataset& dataset) {
  return {sizes_of(dataset), dataset.test.count,
          bytes_of_samples(dataset.train) + bytes_of_samples(dataset.validation) +
              bytes_of_samples(dataset.test)};
}

DataCost data_cost(const DatasetSpec& spec, const DataSizes& sizes) {
  constexpr std::size_t kKnownTest = 10000;  // of every set that is known by its name
  DataCost cost{.sizes = sizes, .test = spec.limit > 0 ? std::min(spec.limit, kKnownTest) : kKnownTest};
  constexpr std::size_t kLabel = sizeof(std::int32_t);
  cost.bytes = (sizes.train + sizes.validation + cost.test) * (element_count(sizes.shape) + kLabel);
  return cost;
}

std::optional<MemoryEstimate> estimate_memory(const RunConfig& run, const Network& network,
                                              const Device& device, const DataCost& data, int threads) {
  EngineOptions options = engine_options(run, device);
  options.threads = threads;
  const std::optional<std::size_t> engine = engine_memory(network, options);
  if (!engine) return std::nullopt;
  const std::size_t outputs = element_count(network.output());
  const std::size_t sample_bytes =
      element_count(data.sizes.shape) * (data.bytes > (data.sizes.train + data.sizes.validation + data.test) *
                                                          element_count(data.sizes.shape) * 2
                                             ? kFloat
                                             : 1);
  const std::uint64_t parameters = network.parameter_count() * kFloat;
  const std::uint64_t checkpoint = checkpoint_floats(run, network) * kFloat;
  // Histograms and checkpoints follow one another; a checkpoint is copied, and written from a second copy.
  const std::uint64_t copies = std::max(run.log.histograms ? 2 * parameters : 0, 2 * checkpoint);
  // Outputs, and their probabilities class by class.
  const std::uint64_t kept =
      run.log.predictions && data.sizes.numbers == 0 ? 3 * shown_count(data) * outputs * kFloat : 0;
  return MemoryEstimate{.process = kProcess,
                        .engine = *engine,
                        .loader = loader_memory(data.sizes.train, sample_bytes, loader_options(run)),
                        .results = copies + kept,
                        .data = data.bytes};
}

DiskEstimate estimate_disk(const RunConfig& run, const Network& network, const DataCost& data) {
  // Measured: bytes of what is written per run and per epoch, without what grows with the network.
  constexpr std::uint64_t kRecords = 14000, kEpochRecord = 500, kEpochScalars = 1100, kGraphLayer = 700;
  constexpr std::uint64_t kHistogram = 1500, kCurve = 4000;
  const std::size_t tensors = network.parameters().size();
  DiskEstimate disk;
  const std::uint64_t checkpoint =
      checkpoint_floats(run, network) * kFloat + 200 * (tensors + network.buffers().size());
  disk.once = kRecords + checkpoint * (keeps_best(run) ? 2 : 1);
  if (run.log.graph) disk.once += kGraphLayer * network.layers().size();
  const std::size_t pixels = element_count(data.sizes.shape);
  if (run.log.images > 0 && data.sizes.shape.size() == 3)
    disk.once +=
        std::min<std::size_t>(static_cast<std::size_t>(run.log.images), run.batch_size) * pixels * 6 / 10;
  if (run.log.predictions && data.sizes.numbers == 0) disk.once += kCurve * data.sizes.classes + 64 * pixels;
  disk.per_epoch = kEpochRecord + kEpochScalars + (run.log.histograms ? 2 * tensors * kHistogram : 0);
  if (run.log.batches > 0)
    disk.per_epoch += 130 * (data.sizes.train / run.batch_size / static_cast<std::size_t>(run.log.batches));
  return disk;
}

}  // namespace sweep
