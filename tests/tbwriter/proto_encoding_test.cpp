// What is encoded by hand must be what protobuf's own classes would have written, byte for byte.
#include "tbwriter/proto_encoding.h"

#include <gtest/gtest.h>

#include <limits>

#include "proto/tensorboard/graph.pb.h"
#include "proto/tensorboard/hparams.pb.h"
#include "proto/tensorboard/plugins.pb.h"
#include "proto/tensorboard/summary.pb.h"
#include "tbwriter/error.h"

namespace sweep::tbwriter {
namespace {

// Parses, and checks that nothing was left over and that serialising gives the same bytes again.
template <class Message>
Message parse(const std::string& bytes) {
  Message message;
  EXPECT_TRUE(message.ParseFromString(bytes));
  EXPECT_EQ(message.SerializeAsString(), bytes);
  return message;
}

TEST(EncodeMetadata, IsASummaryMetadata) {
  const auto metadata = parse<proto::SummaryMetadata>(
      encode_metadata("images", "abc", DataClass::kBlobs, "A name", "*Text* \xFF"));
  EXPECT_EQ(metadata.plugin_data().plugin_name(), "images");
  EXPECT_EQ(metadata.plugin_data().content(), "abc");
  EXPECT_EQ(metadata.data_class(), proto::DATA_CLASS_BLOB_SEQUENCE);
  EXPECT_EQ(metadata.display_name(), "A name");
  EXPECT_EQ(metadata.summary_description(), "*Text* \xEF\xBF\xBD");
}

TEST(EncodeHistogram, IsAHistogram) {
  const Histogram histogram{-1.5, 2.5, 7, 3.25, 12.5, {-1, 0, 3}, {2, 0, 5}};
  const auto message = parse<proto::Histogram>(encode_histogram(histogram));
  EXPECT_EQ(message.min(), -1.5);
  EXPECT_EQ(message.max(), 2.5);
  EXPECT_EQ(message.num(), 7);
  EXPECT_EQ(message.sum(), 3.25);
  EXPECT_EQ(message.sum_squares(), 12.5);
  EXPECT_EQ(std::vector<double>(message.bucket_limit().begin(), message.bucket_limit().end()),
            histogram.limits);
  EXPECT_EQ(std::vector<double>(message.bucket().begin(), message.bucket().end()), histogram.counts);
  EXPECT_EQ(encode_histogram({}), "");
}

TEST(EncodeTensor, HasTypeAndShape) {
  const std::vector<float> values{1, 2, 3, 4, 5, 6};
  const std::int64_t shape[] = {2, 3};
  const auto tensor = parse<proto::Tensor>(encode_float_tensor(values, shape));
  EXPECT_EQ(tensor.dtype(), proto::DT_FLOAT);
  ASSERT_EQ(tensor.tensor_shape().dim_size(), 2);
  EXPECT_EQ(tensor.tensor_shape().dim(1).size(), 3);
  EXPECT_EQ(tensor.tensor_content(),
            std::string("\0\0\x80\x3f\0\0\0\x40\0\0\x40\x40\0\0\x80\x40\0\0\xa0\x40\0\0\xc0\x40", 24));
  const auto text = parse<proto::Tensor>(encode_text_tensor(""));
  EXPECT_EQ(text.dtype(), proto::DT_STRING);
  EXPECT_TRUE(text.has_tensor_shape());
  EXPECT_EQ(text.string_val_size(), 1);
}

TEST(EncodeSessionStart, KeepsTypesAlsoOfFalseZeroAndEmpty) {
  const HParams hparams{{"lr", 0.01},       {"zero", 0.0}, {"batch_size", std::int64_t{100}},
                        {"shuffle", true},  {"no", false}, {"device", std::string("cpu")},
                        {"", std::string()}};
  EXPECT_THROW(encode_session_start(hparams, 1), UsageError);
  HParams named = hparams;
  named.back().first = "empty";
  proto::HParamsPluginData data;  // Not compared by bytes: a map has no order.
  ASSERT_TRUE(data.ParseFromString(encode_session_start(named, 12.5)));
  const auto& session = data.session_start_info();
  EXPECT_EQ(data.version(), 0);
  EXPECT_EQ(session.start_time_secs(), 12.5);
  EXPECT_EQ(session.group_name(), "");
  ASSERT_EQ(session.hparams_size(), 7);
  EXPECT_EQ(session.hparams().at("lr").number_value(), 0.01);
  EXPECT_EQ(session.hparams().at("zero").kind_case(), google::protobuf::Value::kNumberValue);
  EXPECT_EQ(session.hparams().at("batch_size").number_value(), 100);
  EXPECT_EQ(session.hparams().at("shuffle").bool_value(), true);
  EXPECT_EQ(session.hparams().at("no").kind_case(), google::protobuf::Value::kBoolValue);
  EXPECT_EQ(session.hparams().at("device").string_value(), "cpu");
  EXPECT_EQ(session.hparams().at("empty").kind_case(), google::protobuf::Value::kStringValue);
}

TEST(EncodeSessionStart, LeavesOutNumbersThatAreNotFiniteAndNull) {
  proto::HParamsPluginData data;
  ASSERT_TRUE(data.ParseFromString(encode_session_start(
      {{"nan", std::numeric_limits<double>::quiet_NaN()}, {"none", nullptr}, {"a", 1.0}}, 1)));
  ASSERT_EQ(data.session_start_info().hparams_size(), 1);
  EXPECT_EQ(data.session_start_info().hparams().at("a").number_value(), 1.0);
}

TEST(EncodeSessionStart, RefusesANameTwice) {
  EXPECT_THROW(encode_session_start({{"a", 1.0}, {"a", 2.0}}, 1), UsageError);
}

TEST(EncodeSessionEnd, HasStatusAndTime) {
  const auto data = parse<proto::HParamsPluginData>(encode_session_end(SessionStatus::kFailure, 99.5));
  EXPECT_EQ(data.session_end_info().status(), proto::STATUS_FAILURE);
  EXPECT_EQ(data.session_end_info().end_time_secs(), 99.5);
}

TEST(EncodeExperiment, HasColumnsAndDomains) {
  HParamsExperiment experiment;
  experiment.name = "sweep";
  experiment.description = "what";
  experiment.user = "who";
  experiment.hparams = {{.name = "lr", .display_name = "rate", .interval = std::pair{0.001, 0.1}},
                        {.name = "device",
                         .type = HParamInfo::Type::kString,
                         .discrete = {std::string("cpu"), std::string("cuda")},
                         .differs = false}};
  experiment.metrics = {{.tag = "Loss/train", .group = "g", .display_name = "loss", .description = "d"}};
  const auto message = parse<proto::HParamsPluginData>(encode_experiment(experiment, 5)).experiment();
  EXPECT_EQ(message.name(), "sweep");
  EXPECT_EQ(message.time_created_secs(), 5);
  ASSERT_EQ(message.hparam_infos_size(), 2);
  EXPECT_EQ(message.hparam_infos(0).domain_interval().max_value(), 0.1);
  EXPECT_EQ(message.hparam_infos(0).type(), proto::DATA_TYPE_FLOAT64);
  EXPECT_TRUE(message.hparam_infos(0).differs());
  EXPECT_EQ(message.hparam_infos(1).domain_discrete().values(1).string_value(), "cuda");
  EXPECT_EQ(message.metric_infos(0).name().tag(), "Loss/train");
  EXPECT_EQ(message.metric_infos(0).name().group(), "g");
}

TEST(EncodeLayout, HasCategoriesAndCharts) {
  const CustomScalarsLayout layout{{"losses",
                                    {{"loss", MultilineChart{{"Loss/train$", "Loss/validation$"}}},
                                     {"band", MarginChart{{{"a", "b", "c"}}}}},
                                    true},
                                   {"empty", {}}};
  const auto message = parse<proto::Layout>(encode_layout(layout));
  ASSERT_EQ(message.category_size(), 2);
  EXPECT_EQ(message.category(0).title(), "losses");
  EXPECT_TRUE(message.category(0).closed());
  EXPECT_EQ(message.category(0).chart(0).multiline().tag(1), "Loss/validation$");
  EXPECT_EQ(message.category(0).chart(1).margin().series(0).upper(), "c");
}

Graph small_graph() {
  return {{{"input", "Placeholder", {}, "/device:CPU:0", {}, {{-1, 1, 28, 28}}},
           {"conv1/weight",
            "Parameter",
            {},
            "/device:CPU:0",
            {{"parameters", std::int64_t{150}}},
            {{6, 1, 5, 5}}},
           {"conv1/conv2d",
            "Conv2d",
            {"input", "conv1/weight:0", "^input"},
            "/device:CPU:0",
            {{"kernel_size", std::vector<std::int64_t>{5, 5}},
             {"bias", false},
             {"scale", 0.5},
             {"mode", std::string("zeros")},
             {"rates", std::vector<double>{0.25, 0.5}}},
            {{-1, 6, 24, 24}, {}}}}};
}

TEST(EncodeGraph, HasNodesEdgesAttributesAndShapes) {
  proto::GraphDef graph;
  ASSERT_TRUE(graph.ParseFromString(encode_graph(small_graph())));
  ASSERT_EQ(graph.node_size(), 3);
  const auto& conv = graph.node(2);
  EXPECT_EQ(conv.name(), "conv1/conv2d");
  EXPECT_EQ(conv.op(), "Conv2d");
  EXPECT_EQ(conv.device(), "/device:CPU:0");
  EXPECT_EQ(conv.input(1), "conv1/weight:0");
  EXPECT_EQ(conv.attr().at("kernel_size").list().i(1), 5);
  EXPECT_EQ(conv.attr().at("bias").value_case(), proto::AttrValue::kB);
  EXPECT_EQ(conv.attr().at("scale").f(), 0.5f);
  EXPECT_EQ(conv.attr().at("mode").s(), "zeros");
  EXPECT_EQ(conv.attr().at("rates").list().f(1), 0.5f);
  const auto& shapes = conv.attr().at("_output_shapes").list().shape();
  ASSERT_EQ(shapes.size(), 2);
  EXPECT_EQ(shapes[0].dim(0).size(), -1);
  EXPECT_EQ(shapes[0].dim(3).size(), 24);
  EXPECT_EQ(shapes[1].dim_size(), 0);
  EXPECT_EQ(conv.attr().at("output_shapes").s(), "[?, 6, 24, 24], []");
  EXPECT_GT(graph.versions().producer(), 0);
}

TEST(EncodeGraph, RefusesWhatTensorBoardWouldDrawWrongly) {
  EXPECT_THROW(encode_graph({}), UsageError);
  Graph graph = small_graph();
  graph.nodes[0].name = "";
  EXPECT_THROW(encode_graph(graph), UsageError);
  graph = small_graph();
  graph.nodes[0].name = "conv1/weight";
  EXPECT_THROW(encode_graph(graph), UsageError);
  graph = small_graph();
  graph.nodes[2].inputs.push_back("nowhere");
  try {
    encode_graph(graph);
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_STREQ(error.what(),
                 "the graph's node conv1/conv2d has the input nowhere, but no node is called so");
  }
}

TEST(EncodeStepStats, GroupsNodesByDevice) {
  const std::vector<NodeProfile> nodes{{"a", "/device:CPU:0", 1000, 20, 4096, {{100, 6, 24, 24}}},
                                       {"b", "/device:GPU:0", 1020, 5, 64, {}},
                                       {"c", "/device:CPU:0", 1030, 7, 0, {}}};
  const auto metadata = parse<proto::RunMetadata>(encode_step_stats(nodes));
  ASSERT_EQ(metadata.step_stats().dev_stats_size(), 2);
  const auto& cpu = metadata.step_stats().dev_stats(0);
  EXPECT_EQ(cpu.device(), "/device:CPU:0");
  ASSERT_EQ(cpu.node_stats_size(), 2);
  EXPECT_EQ(cpu.node_stats(0).node_name(), "a");
  EXPECT_EQ(cpu.node_stats(0).all_start_micros(), 1000);
  EXPECT_EQ(cpu.node_stats(0).all_end_rel_micros(), 20);
  EXPECT_EQ(cpu.node_stats(0).memory(0).total_bytes(), 4096);
  EXPECT_EQ(cpu.node_stats(0).output(0).tensor_description().shape().dim(0).size(), 100);
}

}  // namespace
}  // namespace sweep::tbwriter
