#include "core/kernels/cuda/device_runner.h"

#include <limits>

#include "core/base/error.h"
#include "core/engine/engine_checks.h"

namespace sweep::cuda {

ProgramOptions program_options(const EngineOptions& options, int device, const BatchShares& shares) {
  if (options.batch_size > static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max())) {
    throw ConfigError("batch_size " + std::to_string(options.batch_size) +
                      " is too large for the CUDA engine");
  }
  return {.batch_size = static_cast<int>(largest_share(options.batch_size, shares)),
          .optimizer = options.optimizer,
          .transform = options.transform,
          .loss = options.loss,
          .clip_norm = options.clip_norm,
          .seed = options.seed,
          .device = device,
          .deterministic = options.deterministic,
          .augment = options.augment,
          .shares = shares};
}

Batch rows_of(const Batch& batch, std::size_t begin, std::size_t end) {
  Batch rows = batch;
  rows.indices = batch.indices.subspan(begin, end - begin);
  return rows;
}

StepInput step_input(const Batch& batch, const LossOptions& loss, bool training) {
  const MeanScale scale = mean_scale(batch, loss, training);
  return {.gradient_scale = scale.gradient, .loss_scale = scale.loss};
}

StepInput training_input(const Batch& batch, const EngineOptions& options, double learning_rate,
                         std::int64_t step) {
  StepInput input = step_input(batch, options.loss, true);
  input.step = static_cast<std::uint32_t>(step - 1);
  input.factors = step_factors(options.optimizer, learning_rate, step);
  return input;
}

DeviceRunner::DeviceRunner(const Network& network, const ProgramOptions& program, std::size_t fed_samples,
                           Placement placement, FedArrays fed)
    : device_(program.device),
      pass_size_(static_cast<std::size_t>(program.batch_size)),
      shares_(program.shares),
      selection_(program.device),
      program_(stream_, network, program),
      feed_(fed_samples, element_count(network.input()), placement, !program.augment.steps.empty(), fed) {}

void DeviceRunner::add(Task task, const Batch& batch, const StepInput& input) {
  select();
  const int images = static_cast<int>(batch.size());
  // Making a new set resident may evict one that collected steps read.
  if (task != task_ || images != images_ || !feed_.is_resident(batch.set)) flush();
  if (task == Task::kAugmentAndTrain) program_.allocate_augmented(stream_, value_bytes(batch.samples));
  task_ = task;
  images_ = images;
  feed_.add(stream_, batch, input);
  if (feed_.steps() == feed_.max_steps() || !feed_.is_resident(batch.set)) flush();
}

void DeviceRunner::flush() {
  select();
  const int steps = feed_.steps();
  if (steps == 0) return;
  clock_.start(stream_);
  const StepInputs inputs = feed_.upload(stream_);
  program_.run(stream_, task_, steps, images_, inputs);
  clock_.stop(stream_);
}

void DeviceRunner::download_outputs(std::span<float> outputs) {
  flush();
  stream_.download(outputs.data(), program_.outputs(), outputs.size_bytes());
}

std::vector<float> DeviceRunner::array(const EngineArray& which) {
  flush();
  const Array<float>& array = program_.array(which);
  return to_host(stream_, array.data(), array.size());
}

void DeviceRunner::set_array(const EngineArray& which, std::span<const float> values) {
  flush();
  stream_.upload(program_.array(which).data(), values.data(), values.size_bytes());
}

std::vector<Totals> DeviceRunner::take_totals() {
  flush();
  Totals* totals = program_.totals_of_share(shares_.first);
  const std::size_t count = static_cast<std::size_t>(program_.totals_of_share(shares_.end) - totals);
  std::vector<Totals> shares = to_host(stream_, totals, count);
  stream_.clear(totals, count * sizeof(Totals));
  return shares;
}

Totals sum_of(std::span<const Totals> shares) {
  Totals totals;
  for (const Totals& share : shares) totals += share;
  return totals;
}

}  // namespace sweep::cuda
