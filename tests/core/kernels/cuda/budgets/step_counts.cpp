// What the kernels of a training step of deeplizard's network ask of a GPU, as JSON for roofline.py: the
// grids of a step, their blocks, and the requests of their warps to memory, counted on the stand-in.
//
//   cuda_step_counts BATCH
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <nlohmann/json.hpp>

#include "core/kernels/cuda/runtime/kernel_overlap.h"
#include "tests/core/kernels/cuda/budgets/counted_step.h"
#include "tests/support/test_networks.h"

namespace sweep::cuda {
namespace {

using nlohmann::json;

// Enough for several blocks of each kernel. Some ten bytes of memory each, and some seconds for a grid.
constexpr std::uint64_t kMostAccesses = 8'000'000;

json to_json(const host::RequestTotals& totals) {
  return {
      {"requests", totals.requests}, {"lanes", totals.lanes}, {"cost", totals.cost}, {"ideal", totals.ideal}};
}

json to_json(const CountedGrid& grid) {
  const host::GridCounts& counts = grid.counts;
  json intervals = json::array();
  for (const host::IntervalCounts& interval : counts.intervals) {
    intervals.push_back({interval.shared_requests, interval.shared_wavefronts, interval.device_requests,
                         interval.device_sectors, interval.longest_shared, interval.longest_device});
  }
  return {{"kernel", grid.kernel},
          {"blocks", counts.blocks},
          {"threads", counts.block.x * counts.block.y * counts.block.z},
          {"dynamic_shared", counts.shared_bytes},
          {"watched_blocks", counts.watched_blocks},
          {"shared_reads", to_json(counts.shared_reads)},
          {"shared_writes", to_json(counts.shared_writes)},
          {"device_reads", to_json(counts.device_reads)},
          {"device_writes", to_json(counts.device_writes)},
          {"intervals", intervals}};
}

// [{"type", "inputs", "outputs", "flops"}]: floats of a sample, and two operations per multiply-add of its
// forward pass.
json layers_of(const Network& network) {
  json layers = json::array();
  for (const Layer& layer : network.layers()) {
    double flops = 0;
    if (!layer.parameters.empty()) {
      const Parameter& weight = network.parameters()[layer.parameters.front()];
      const auto outputs = static_cast<double>(element_count(layer.output));
      flops = 2 * outputs * static_cast<double>(weight.fan_in);
    }
    layers.push_back({{"type", layer.type},
                      {"inputs", element_count(layer.input)},
                      {"outputs", element_count(layer.output)},
                      {"flops", flops}});
  }
  return layers;
}

void print_counts(std::size_t images) {
  const Network network(test::deeplizard(), {1, 28, 28});
  json grids = json::array();
  for (const CountedGrid& grid : count_step(network, images, kMostAccesses)) grids.push_back(to_json(grid));
  std::cout << json{{"images", images},
                    {"overlap", kernels_may_overlap()},
                    {"forward_flops", network.forward_flops()},
                    {"training_flops", network.training_flops()},
                    {"layers", layers_of(network)},
                    {"grids", grids}}
            << '\n';
}

}  // namespace
}  // namespace sweep::cuda

int main(int count, char** arguments) try {
  const long images = count == 2 ? std::atol(arguments[1]) : 0;
  if (images <= 0) {
    std::fputs("usage: cuda_step_counts BATCH\n", stderr);
    return 2;
  }
  sweep::cuda::print_counts(static_cast<std::size_t>(images));
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "cuda_step_counts: %s\n", error.what());
  return 1;
}
