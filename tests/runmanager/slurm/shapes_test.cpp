// What the tasks of a run are given.
#include "runmanager/slurm/shapes.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace sweep {
namespace {

int devices_of(const char* device, ParallelOptions parallel) {
  RunConfig run;
  run.device = device;
  run.parallel = std::move(parallel);
  return shape_of(run, {}).devices;
}

ParallelOptions replicas(int data, ParallelOptions options = {}) {
  options.data = data;
  return options;
}

ParallelOptions model(std::vector<LayerPlacement> placements) {
  ParallelOptions options;
  options.model = std::move(placements);
  return options;
}

ParallelOptions pipeline(int stages, std::vector<std::string> first_layers) {
  ParallelOptions options;
  options.pipeline = PipelineOptions{.stages = stages, .first_layers = std::move(first_layers)};
  return options;
}

TEST(Shapes, HaveTheGpusOfAllStagesAndReplicas) {
  EXPECT_EQ(devices_of("cuda", {}), 1);
  EXPECT_EQ(devices_of("cuda", replicas(4)), 4);
  EXPECT_EQ(devices_of("cuda", replicas(2, pipeline(3, {}))), 6);
  EXPECT_EQ(devices_of("cuda", pipeline(0, {"conv2", "fc1"})), 3);
  EXPECT_EQ(devices_of("cuda", replicas(2, model({{"conv*", "cuda:0"}, {"fc*", "cuda:1"}}))), 4);
}

TEST(Shapes, HaveTheGpusBelowThoseThatAreNamed) {
  EXPECT_EQ(devices_of("cuda", model({{"conv*", "cuda:2"}, {"fc*", "cuda:1"}})), 3);
  EXPECT_EQ(devices_of("cuda", replicas(2, model({{"conv*", "cuda"}, {"fc*", "cuda:2"}}))), 6);
}

TEST(Shapes, HaveCoresByTheirOwnKey) { EXPECT_EQ(devices_of("cpu", replicas(4)), 1); }

}  // namespace
}  // namespace sweep
