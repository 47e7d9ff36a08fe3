// What a SummaryWriter refuses or warns of, since TensorBoard would show nothing or the wrong thing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "proto/tensorboard/hparams.pb.h"
#include "tbwriter/summary_writer.h"
#include "tests/support/event_files.h"
#include "tests/support/message_of.h"

namespace sweep::tbwriter {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const Graph kGraph = {{{.name = "a", .op = "A"}, {.name = "b", .op = "B", .inputs = {"a"}}}};

std::vector<NodeProfile> profile_of(const std::string& node) {
  return {{.node = node, .device = "/device:CPU:0", .duration_micros = 1, .output_shapes = {{1}}}};
}

TEST(SummaryWriter, RefusesASecondGraph) {
  const TemporaryDirectory directory;
  SummaryWriter writer(directory / "run");
  writer.add_graph(kGraph);
  EXPECT_THAT(test::message_of<UsageError>([&] { writer.add_graph(kGraph); }),
              HasSubstr("has a graph already"));
  writer.close();
  std::size_t graphs = 0;
  for (const proto::Event& event : read_run(directory / "run")) graphs += event.graph_def().empty() ? 0 : 1;
  EXPECT_EQ(graphs, 1u);
}

TEST(SummaryWriter, TakesAGraphAfterOneThatItRefused) {
  const TemporaryDirectory directory;
  SummaryWriter writer(directory / "run");
  EXPECT_THROW(writer.add_graph({}), UsageError);
  EXPECT_NO_THROW(writer.add_graph(kGraph));
}

TEST(SummaryWriter, RefusesProfilesOfNodesThatAreNotInTheGraph) {
  const TemporaryDirectory directory;
  SummaryWriter writer(directory / "run");
  EXPECT_THAT(test::message_of<UsageError>([&] { writer.add_graph_profile("step", profile_of("a")); }),
              HasSubstr("before the graph"));
  writer.add_graph(kGraph);
  EXPECT_NO_THROW(writer.add_graph_profile("step", profile_of("b")));
  EXPECT_THAT(test::message_of<UsageError>([&] { writer.add_graph_profile("step", profile_of("c")); }),
              HasSubstr("the node c, but the graph has none"));
}

TEST(SummaryWriter, TakesProfilesOfAResumedRunWhoseGraphIsInAnOlderFile) {
  const TemporaryDirectory directory;
  SummaryWriter writer(directory / "run", {.purge_step = 5});
  EXPECT_NO_THROW(writer.add_graph_profile("step", profile_of("a"), 5));
}

TEST(SummaryWriter, WarnsOfHyperparametersThatAreNotFinite) {
  const TemporaryDirectory directory;
  std::vector<std::string> warnings;
  WriterOptions options;
  options.warn = [&warnings](const std::string& warning) { warnings.push_back(warning); };
  {
    SummaryWriter writer(directory / "run", options);
    writer.add_hparams_start(
        {{"lr", std::nan("")}, {"beta", 0.5}, {"big", std::numeric_limits<double>::infinity()}});
    writer.close();
  }
  EXPECT_THAT(warnings, ElementsAre(HasSubstr("the hyperparameter lr is nan"),
                                    HasSubstr("the hyperparameter big is inf")));
  proto::HParamsPluginData data;
  const auto found = values_of(read_run(directory / "run"), "_hparams_/session_start_info");
  ASSERT_TRUE(data.ParseFromString(found.at(0).metadata().plugin_data().content()));
  EXPECT_EQ(data.session_start_info().hparams().size(), 1u);
}

TEST(SummaryWriter, WritesScalarsOfTheNewStyleAsTensorsWithMetadata) {
  const TemporaryDirectory directory;
  {
    SummaryWriter writer(directory / "run");
    writer.add_scalar_tensor("new", 0.25, 1);
    writer.add_scalar_tensor("new", 0.5, 2);
    EXPECT_THROW(writer.add_scalar("new", 1, 3), UsageError);
    writer.close();
  }
  const auto found = values_of(read_run(directory / "run"), "new");
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].tensor().dtype(), 1) << "DT_FLOAT";
  EXPECT_EQ(found[0].tensor().tensor_shape().dim_size(), 0);
  float value = 0;
  std::memcpy(&value, found[1].tensor().tensor_content().data(), sizeof value);
  EXPECT_EQ(value, 0.5f);
  EXPECT_EQ(found[0].metadata().plugin_data().plugin_name(), "scalars");
  EXPECT_EQ(found[0].metadata().data_class(), proto::DATA_CLASS_SCALAR);
}

}  // namespace
}  // namespace sweep::tbwriter
