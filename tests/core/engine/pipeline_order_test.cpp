// What the devices of a pipeline do, and when.
#include "core/engine/stages.h"

#include "tests/support/test.h"

namespace sweep::pipeline_order_test {

using Order = std::vector<std::vector<StageTask>>;

constexpr auto kGpipe = PipelineSchedule::kGpipe;
constexpr auto k1F1B = PipelineSchedule::kOneForwardOneBackward;

// "F0 F1 B0 B1": what a device does with which part; of several stages, "F0.1" is part 0 of stage 1.
std::string tasks_of(const Order& order, std::size_t device, bool with_stage = false) {
  std::string text;
  for (const StageTask& task : order[device]) {
    text += (text.empty() ? "" : " ") + std::string(task.backward ? "B" : "F") + std::to_string(task.part);
    if (with_stage) text += "." + std::to_string(task.stage);
  }
  return text;
}

struct Case {
  std::vector<std::size_t> devices;  // of each stage
  std::size_t parts;
  PipelineSchedule schedule;
};

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const std::vector<std::size_t>& devices : {std::vector<std::size_t>{0},
                                                  {0, 1},
                                                  {0, 1, 2},
                                                  {0, 1, 2, 3},
                                                  {0, 1, 0},
                                                  {0, 1, 0, 1},
                                                  {0, 1, 2, 1, 0}}) {
    for (const std::size_t parts : {1, 2, 3, 4, 7, 16}) {
      for (const PipelineSchedule schedule : {kGpipe, k1F1B}) all.push_back({devices, parts, schedule});
    }
  }
  return all;
}

// Plays the order with devices that wait for what a task needs. Returns false if they wait for ever.
bool ends(const Case& c, const Order& order, PipelinePasses passes) {
  const std::size_t stages = c.devices.size();
  std::vector<std::size_t> forward(stages, passes == PipelinePasses::kBackward ? c.parts : 0),
      backward(stages);
  std::vector<std::size_t> next(order.size());
  for (bool goes_on = true; goes_on;) {
    goes_on = false;
    for (std::size_t device = 0; device < order.size(); ++device) {
      while (next[device] < order[device].size()) {
        const StageTask& task = order[device][next[device]];
        if (c.devices[task.stage] != device) return false;
        const bool is_ready =
            task.backward
                ? (task.stage + 1 == stages ? forward : backward)[std::min(task.stage + 1, stages - 1)] >
                      task.part
                : task.stage == 0 || forward[task.stage - 1] > task.part;
        if (!is_ready) break;
        if ((task.backward ? backward : forward)[task.stage]++ != task.part)
          return false;  // the parts' order
        ++next[device];
        goes_on = true;
      }
    }
  }
  const bool all_forward = std::all_of(forward.begin(), forward.end(), [&](auto n) { return n == c.parts; });
  const bool all_back = std::all_of(backward.begin(), backward.end(), [&](auto n) { return n == c.parts; });
  return all_forward && (all_back || passes == PipelinePasses::kForward);
}

TEST(PipelineOrder, OfGpipeGoesForwardWithEverythingFirst) {
  const std::vector<std::size_t> devices = {0, 1};
  const Order order = pipeline_order(devices, 3, kGpipe, PipelinePasses::kBoth);
  EXPECT_EQ(tasks_of(order, 0), "F0 F1 F2 B0 B1 B2");
  EXPECT_EQ(tasks_of(order, 1), "F0 F1 F2 B0 B1 B2");
}

TEST(PipelineOrder, OfOneForwardOneBackwardAlternates) {
  const std::vector<std::size_t> devices = {0, 1, 2};
  const Order order = pipeline_order(devices, 5, k1F1B, PipelinePasses::kBoth);
  EXPECT_EQ(tasks_of(order, 0), "F0 F1 F2 B0 F3 B1 F4 B2 B3 B4");
  EXPECT_EQ(tasks_of(order, 1), "F0 F1 B0 F2 B1 F3 B2 F4 B3 B4");
  EXPECT_EQ(tasks_of(order, 2), "F0 B0 F1 B1 F2 B2 F3 B3 F4 B4");
}

TEST(PipelineOrder, OfADeviceWithTwoStagesBringsTheFurthestPartOn) {
  const std::vector<std::size_t> devices = {0, 1, 0};
  const Order order = pipeline_order(devices, 2, kGpipe, PipelinePasses::kForward);
  EXPECT_EQ(tasks_of(order, 0, true), "F0.0 F1.0 F0.2 F1.2");
  EXPECT_EQ(tasks_of(order, 1, true), "F0.1 F1.1");
}

TEST(PipelineOrder, NeverWaitsForEver) {
  for (const Case& c : cases()) {
    for (const PipelinePasses passes :
         {PipelinePasses::kForward, PipelinePasses::kBackward, PipelinePasses::kBoth}) {
      SCOPED_TRACE(testing::Message() << c.devices.size() << " stages, " << c.parts << " parts, passes "
                                      << static_cast<int>(passes));
      EXPECT_TRUE(ends(c, pipeline_order(c.devices, c.parts, c.schedule, passes), passes));
    }
  }
}

TEST(PipelineOrder, OfOneForwardOneBackwardKeepsFewPartsInMemory) {
  for (const Case& c : cases()) {
    if (c.schedule != k1F1B) continue;
    const std::size_t stages = c.devices.size();
    for (const auto& tasks : pipeline_order(c.devices, c.parts, k1F1B, PipelinePasses::kBoth)) {
      std::vector<std::size_t> under_way(stages);
      for (const StageTask& task : tasks) {
        under_way[task.stage] += task.backward ? static_cast<std::size_t>(-1) : 1;
        EXPECT_LE(under_way[task.stage], stages - task.stage);
      }
    }
  }
}

}  // namespace sweep::pipeline_order_test
