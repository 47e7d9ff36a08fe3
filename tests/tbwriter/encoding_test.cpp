// What is encoded by hand must be what protobuf's own classes would have written, byte for byte.
#include <google/protobuf/text_format.h>

#include "proto/tensorboard/graph.pb.h"
#include "proto/tensorboard/hparams.pb.h"
#include "proto/tensorboard/plugins.pb.h"
#include "proto/tensorboard/summary.pb.h"
#include "tbwriter/summary_writer.h"
#include "tests/support/event_files.h"

namespace sweep::tbwriter::encoding_test {

proto::Summary::Value value_of(const AddToWriter& add) { return event_of(add).summary().value(0); }
std::string content_of(const AddToWriter& add) { return value_of(add).metadata().plugin_data().content(); }

// Fails the test unless `bytes` are the message that has this text, as protobuf would have written it;
// messages with maps may have another order.
template <class Message>
void expect_encoded(const std::string& bytes, const std::string& text, bool has_map = false) {
  Message expected, message;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &expected));
  ASSERT_TRUE(message.ParseFromString(bytes));
  EXPECT_EQ(message.DebugString(), expected.DebugString());
  if (!has_map) {
    EXPECT_EQ(expected.SerializeAsString(), bytes);
  }
}

const std::vector<float> kNumbers = {1, 2};
const std::vector<std::int64_t> kShape = {2, 1};

TEST(Encode, WritesTheMessageOfEachKind) {
  const float samples[] = {0, 1, -1, 0.5f, 2, std::numeric_limits<float>::quiet_NaN()};
  const Details details = {.display_name = "A name", .description = "*Text* \xFF"};
  const EncodedImage image = {.width = 3, .height = 2, .channels = 1, .bytes = "png"};
  const Histogram histogram = {-1.5, 2.5, 7, 3.25, 12.5, {-1, 0, 3}, {2, 0, 5}};
  const Histogram huge = {-1e300, 1e200, 2, -1e300, 1e39, {-1e299, 1, 1e200}, {1, 0, 1}};
  const std::pair<AddToWriter, const char*> rows[] = {
      {[&](SummaryWriter& writer) { writer.add_scalar("t", 0.5); }, "simple_value: 0.5"},
      {[&](SummaryWriter& writer) { writer.add_scalar_tensor("t", 1); },
       R"(tensor { dtype: DT_FLOAT tensor_shape {} tensor_content: "\000\000\200\077" }
          metadata { plugin_data { plugin_name: "scalars" } data_class: DATA_CLASS_SCALAR })"},
      {[&](SummaryWriter& writer) { writer.add_histogram_counts("t", histogram); },
       R"(histo { min: -1.5 max: 2.5 num: 7 sum: 3.25 sum_squares: 12.5 bucket_limit: [-1, 0, 3]
                  bucket: [2, 0, 5] })"},
      {[&](SummaryWriter& writer) { writer.add_histogram("t", std::vector<float>()); }, "histo {}"},
      // TensorBoard has floats.
      {[&](SummaryWriter& writer) { writer.add_histogram_counts("t", huge); },
       R"(histo { min: -3.4028234663852886e38 max: 3.4028234663852886e38 num: 2 sum: -1e300 sum_squares: 1e39
                  bucket_limit: [-3.4028234663852886e38, 1, 3.4028234663852886e38] bucket: [1, 0, 1] })"},
      {[&](SummaryWriter& writer) { writer.add_image("t", image, 0, details); },
       R"(image { height: 2 width: 3 colorspace: 1 encoded_image_string: "png" }
          metadata { plugin_data { plugin_name: "images" } display_name: "A name"
                     summary_description: "*Text* \357\277\275" data_class: DATA_CLASS_BLOB_SEQUENCE })"},
      {[&](SummaryWriter& writer) {
         writer.add_images("t", {{image, image}});
       },
       R"(tensor { dtype: DT_STRING tensor_shape { dim { size: 4 } } string_val: ["3", "2", "png", "png"] }
          metadata { plugin_data { plugin_name: "images" } data_class: DATA_CLASS_BLOB_SEQUENCE })"},
      {[&](SummaryWriter& writer) { writer.add_audio("t", samples, 8000, 2); },
       R"(audio { sample_rate: 8000 num_channels: 2 length_frames: 3 content_type: "audio/wav"
                  encoded_audio_string: "RIFF\060\000\000\000WAVEfmt \020\000\000\000\001\000\002\000"
                                        "\100\037\000\000\000\175\000\000\004\000\020\000data\014\000\000\000"
                                        "\000\000\377\177\001\200\000\100\377\177\000\000" }
          metadata { plugin_data { plugin_name: "audio" content: "\020\013" }
                     data_class: DATA_CLASS_BLOB_SEQUENCE })"},
      {[&](SummaryWriter& writer) { writer.add_text("t", ""); },
       R"(tensor { dtype: DT_STRING tensor_shape {} string_val: "" }
          metadata { plugin_data { plugin_name: "text" } data_class: DATA_CLASS_TENSOR })"},
      {[&](SummaryWriter& writer) { writer.add_tensor("t", kNumbers, kShape); },
       R"(tensor { dtype: DT_FLOAT tensor_shape { dim { size: 2 } dim { size: 1 } }
                   tensor_content: "\000\000\200\077\000\000\000\100" }
          metadata { plugin_data { plugin_name: "tensor" } data_class: DATA_CLASS_TENSOR })"}};
  for (const auto& [add, text] : rows) {
    expect_encoded<proto::Summary::Value>(value_of(add).SerializeAsString(),
                                          std::string("tag: \"t\" ") + text);
  }
}

TEST(EncodeMeshContent, HasShapeAndComponents) {
  const float corners[9] = {};
  const std::int32_t faces[12] = {};
  const Mesh mesh{.vertices = corners, .faces = faces, .config = "{}"};
  const auto event = event_of([&](SummaryWriter& writer) { writer.add_mesh("m", mesh); });
  ASSERT_EQ(event.summary().value_size(), 2);
  expect_encoded<proto::MeshPluginData>(event.summary().value(1).metadata().plugin_data().content(), R"(
      name: "m" content_type: FACE json_config: "{}" shape: [1, 4, 3] components: 6)");
}

TEST(EncodeSession, KeepsTypesAlsoOfFalseZeroAndEmptyAndLeavesOutWhatHasNoCell) {
  const HParams hparams{{"lr", 0.01},
                        {"zero", 0.0},
                        {"batch_size", std::int64_t{100}},
                        {"shuffle", true},
                        {"no", false},
                        {"device", std::string("cpu")},
                        {"empty", std::string()},
                        {"nan", std::numeric_limits<double>::quiet_NaN()},
                        {"none", nullptr}};
  const auto start = content_of([&](SummaryWriter& writer) { writer.add_hparams_start(hparams, 12.5); });
  expect_encoded<proto::HParamsPluginData>(start, R"(
      session_start_info {
        hparams { key: "lr" value { number_value: 0.01 } }
        hparams { key: "zero" value { number_value: 0 } }
        hparams { key: "batch_size" value { number_value: 100 } }
        hparams { key: "shuffle" value { bool_value: true } }
        hparams { key: "no" value { bool_value: false } }
        hparams { key: "device" value { string_value: "cpu" } }
        hparams { key: "empty" value { string_value: "" } }
        start_time_secs: 12.5
      })",
                                           true);
  const auto end =
      content_of([](SummaryWriter& writer) { writer.add_hparams_end(SessionStatus::kFailure, 99.5); });
  expect_encoded<proto::HParamsPluginData>(end,
                                           "session_end_info { status: STATUS_FAILURE end_time_secs: 99.5 }");
}

TEST(EncodeExperiment, HasColumnsAndDomains) {
  HParamsExperiment experiment;
  experiment.name = "sweep";
  experiment.description = "what";
  experiment.user = "who";
  experiment.hparams = {{.name = "lr", .display_name = "rate", .interval = std::pair{0.001, 0.1}},
                        {.name = "device",
                         .type = HParamInfo::Type::kString,
                         .discrete = {std::string("cpu"), nullptr, std::string("cuda")},
                         .differs = false}};
  experiment.metrics = {{.tag = "Loss/train", .group = "g", .display_name = "loss", .description = "d"}};
  const auto add = [&](SummaryWriter& writer) { writer.add_hparams_experiment(experiment); };
  expect_encoded<proto::HParamsPluginData>(content_of(add), R"(
      experiment {
        description: "what" user: "who" time_created_secs: 5 name: "sweep"
        hparam_infos { name: "lr" display_name: "rate" type: DATA_TYPE_FLOAT64
                       domain_interval { min_value: 0.001 max_value: 0.1 } differs: true }
        hparam_infos { name: "device" type: DATA_TYPE_STRING
                       domain_discrete { values { string_value: "cpu" } values { string_value: "cuda" } } }
        metric_infos { name { group: "g" tag: "Loss/train" } display_name: "loss" description: "d" }
      })");
}

TEST(EncodeLayout, HasCategoriesAndCharts) {
  const CustomScalarsLayout layout{
      {"losses", {{"loss", {"Loss/train$", "Loss/validation$"}}, {"band", {"a", "b", "c"}, true}}, true},
      {"empty", {}}};
  const auto add = [&](SummaryWriter& writer) { writer.add_custom_scalars_layout(layout); };
  expect_encoded<proto::Layout>(value_of(add).tensor().string_val(0), R"(
      category {
        title: "losses" closed: true
        chart { title: "loss" multiline { tag: ["Loss/train$", "Loss/validation$"] } }
        chart { title: "band" margin { series { value: "a" lower: "b" upper: "c" } } }
      }
      category { title: "empty" })");
}

TEST(EncodeGraph, HasNodesEdgesAttributesAndShapes) {
  const Graph graph = {{{"input", "Placeholder", {}, "/device:CPU:0", {}, {{-1, 1, 28, 28}}},
                        {"weight", "Parameter", {}, "", {{"parameters", std::int64_t{150}}}, {}},
                        {"conv1/conv2d",
                         "Conv2d",
                         {"input", "weight:0", "^input"},
                         "",
                         {{"kernel_size", std::vector<std::int64_t>{5, 5}},
                          {"bias", false},
                          {"scale", 0.5},
                          {"mode", std::string("zeros")},
                          {"rates", std::vector<double>{0.25, 0.5}}},
                         {{6}, {}}}}};
  const auto add = [&](SummaryWriter& writer) { writer.add_graph(graph); };
  expect_encoded<proto::GraphDef>(event_of(add).graph_def(), R"(
      node {
        name: "input" op: "Placeholder" device: "/device:CPU:0"
        attr { key: "_output_shapes" value { list { shape {
            dim { size: -1 } dim { size: 1 } dim { size: 28 } dim { size: 28 } } } } }
        attr { key: "output_shapes" value { s: "[?, 1, 28, 28]" } }
      }
      node { name: "weight" op: "Parameter" attr { key: "parameters" value { i: 150 } } }
      node {
        name: "conv1/conv2d" op: "Conv2d" input: ["input", "weight:0", "^input"]
        attr { key: "kernel_size" value { list { i: [5, 5] } } }
        attr { key: "bias" value { b: false } }
        attr { key: "scale" value { f: 0.5 } }
        attr { key: "mode" value { s: "zeros" } }
        attr { key: "rates" value { list { f: [0.25, 0.5] } } }
        attr { key: "_output_shapes" value { list { shape { dim { size: 6 } } shape {} } } }
        attr { key: "output_shapes" value { s: "[6], []" } }
      }
      versions { producer: 22 })",
                                  true);
}

TEST(EncodeStepStats, GroupsNodesByDevice) {
  const std::vector<NodeProfile> nodes{{"a", "/device:CPU:0", 1000, 20, 4096, {{100, 6}}},
                                       {"b", "/device:GPU:0", 1020, 5, 64, {}},
                                       {"c", "/device:CPU:0", 1030, 7, 0, {}}};
  const Graph graph{{{.name = "a"}, {.name = "b"}, {.name = "c"}}};
  const auto event = event_of([&](SummaryWriter& writer) {
    writer.add_graph(graph);
    writer.add_graph_profile("step", nodes);
  });
  EXPECT_EQ(event.tagged_run_metadata().tag(), "step");
  expect_encoded<proto::RunMetadata>(event.tagged_run_metadata().run_metadata(), R"(
      step_stats {
        dev_stats {
          device: "/device:CPU:0"
          node_stats {
            node_name: "a" all_start_micros: 1000 op_end_rel_micros: 20 all_end_rel_micros: 20
            memory { allocator_name: "allocator" total_bytes: 4096 peak_bytes: 4096 }
            output { tensor_description { dtype: DT_FLOAT shape { dim { size: 100 } dim { size: 6 } } } }
          }
          node_stats {
            node_name: "c" all_start_micros: 1030 op_end_rel_micros: 7 all_end_rel_micros: 7
            memory { allocator_name: "allocator" }
          }
        }
        dev_stats {
          device: "/device:GPU:0"
          node_stats {
            node_name: "b" all_start_micros: 1020 op_end_rel_micros: 5 all_end_rel_micros: 5
            memory { allocator_name: "allocator" total_bytes: 64 peak_bytes: 64 }
          }
        }
      })");
}

std::string curve_of(const std::vector<std::uint8_t>& labels, const std::vector<float>& scores,
                     int thresholds, const std::vector<float>& weights = {}) {
  const auto add = [&](SummaryWriter& writer) {
    writer.add_pr_curve("t", labels, scores, 0, thresholds, {}, weights);
  };
  return value_of(add).tensor().tensor_content();
}

std::string bytes_of(const std::vector<float>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

// torch.utils.tensorboard.summary.compute_curve(labels=[0, 1, 1, 0, 1], predictions=[0, 1, .6, .7, .2],
// num_thresholds=5)
TEST(AddPrCurve, MatchesPyTorch) {
  const std::vector<std::uint8_t> labels{0, 1, 1, 0, 1};
  const std::vector<float> scores{0.0f, 1.0f, 0.6f, 0.7f, 0.2f};
  const std::vector<float> expected{3,    2,        2,        1,        1,          // true positives
                                    2,    1,        1,        0,        0,          // false positives
                                    0,    1,        1,        2,        2,          // true negatives
                                    0,    1,        1,        2,        2,          // false negatives
                                    0.6f, 2 / 3.0f, 2 / 3.0f, 1,        1,          // precision
                                    1,    2 / 3.0f, 2 / 3.0f, 1 / 3.0f, 1 / 3.0f};  // recall
  EXPECT_EQ(curve_of(labels, scores, 5), bytes_of(expected));
  const auto add = [&](SummaryWriter& writer) { writer.add_pr_curve("t", labels, scores, 2, 11); };
  expect_encoded<proto::PrCurvePluginData>(content_of(add), "num_thresholds: 11");
}

TEST(AddPrCurve, WeighsSamples) {
  const std::vector<std::uint8_t> labels{1, 0};
  const std::vector<float> scores{1, 1}, weights{3, 1};
  EXPECT_EQ(curve_of(labels, scores, 2, weights), bytes_of({3, 3, 1, 1, 0, 0, 0, 0, 0.75f, 0.75f, 1, 1}));
  EXPECT_EQ(curve_of({}, {}, 2), bytes_of(std::vector<float>(12, 0.0f))) << "nothing";
}

}  // namespace sweep::tbwriter::encoding_test
