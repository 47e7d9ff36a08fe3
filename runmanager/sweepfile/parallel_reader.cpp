#include "runmanager/sweepfile/parallel_reader.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/error.h"
#include "core/engine/device.h"
#include "runmanager/sweepfile/settings/settings.h"

namespace sweep {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kNone = "none";

// "cpu:1" of a stage; "auto" says nothing there.
bool is_stage_device(const std::string& text) {
  try {
    parse_device(text);
    return text != "auto";
  } catch (const ConfigError&) {
    return false;
  }
}

std::vector<LayerPlacement> read_model(const JsonNode& node, Problems& problems) {
  std::vector<LayerPlacement> model;
  if (!node.is(JsonKind::kObject) || node.members.empty()) {
    problems.add_value(node,
                       "an object of layers and devices, such as {\"conv*\": \"cpu:0\", \"fc*\": \"cpu:1\"}");
    return model;
  }
  for (const JsonMember& member : node.members) {
    if (!member.value.is(JsonKind::kString) || !is_stage_device(member.value.text)) {
      problems.add_value(member.value, "cpu, cuda, cuda:N or cpu:N (N is a device number from 0)");
      continue;
    }
    model.push_back({member.key, parse_device(member.value.text).name()});
    if (!model.empty() && parse_device(model.front().device).type != parse_device(model.back().device).type)
      problems.add(*member.value.location,
                   fmt::format("got {}, but {} is on {}, want devices of one kind", model.back().device,
                               model.front().layers, model.front().device));
  }
  return model;
}

void read_stages(const JsonNode& node, PipelineOptions& pipeline, Problems& problems) {
  const auto is_name = [](const JsonNode& e) { return e.is(JsonKind::kString) && !e.text.empty(); };
  if (node.is(JsonKind::kInteger) && node.number >= 1 && node.number <= kMaxReplicas) {
    pipeline.stages = static_cast<int>(node.integer);
  } else if (node.is(JsonKind::kArray) && !node.elements.empty() &&
             std::all_of(node.elements.begin(), node.elements.end(), is_name)) {
    for (const JsonNode& name : node.elements) pipeline.first_layers.push_back(name.text);
  } else {
    problems.add_value(node,
                       fmt::format("an integer >= 1 and <= {}, or a list of layer names", kMaxReplicas));
  }
}

PipelineOptions read_pipeline(const JsonNode& node, bool has_model, Problems& problems) {
  PipelineOptions pipeline;
  if (!node.is(JsonKind::kObject)) {
    problems.add_value(node, "an object with any of: stages, micro_batches, schedule");
    return pipeline;
  }
  check_keys(node, pipeline_settings(), problems);
  const SettingReader reader(&node, pipeline_settings(), problems);
  const JsonNode* stages = node.find("stages");
  if (stages != nullptr && has_model) {
    problems.add(*stages->location,
                 "stages are those of \"model\", which names their devices; want one of both");
  } else if (stages != nullptr) {
    read_stages(*stages, pipeline, problems);
  } else if (!has_model) {
    problems.add(*node.location, "\"stages\" is missing, want how many, or the layers they begin with");
  }
  pipeline.micro_batches = static_cast<int>(reader.integer("micro_batches"));
  pipeline.schedule = parse_pipeline_schedule(reader.text("schedule"));
  return pipeline;
}

}  // namespace

ParallelOptions read_parallel(const JsonNode& tree, Problems& problems) {
  ParallelOptions options;
  const JsonNode* node = tree.find("parallel");
  if (node == nullptr || (node->is(JsonKind::kString) && node->text == kNone)) return options;
  if (!node->is(JsonKind::kObject)) {
    problems.add_value(*node, "none, or an object with any of: data, model, pipeline");
    return options;
  }
  check_keys(*node, parallel_settings(), problems);
  const SettingReader reader(node, parallel_settings(), problems);
  options.data = static_cast<int>(reader.integer("data"));
  if (const JsonNode* model = node->find("model")) options.model = read_model(*model, problems);
  if (const JsonNode* pipeline = node->find("pipeline"))
    options.pipeline = read_pipeline(*pipeline, node->find("model") != nullptr, problems);
  return options;
}

Json parallel_json(const ParallelOptions& options) {
  if (!options.is_parallel()) return kNone;
  Json json = Json::object();
  if (options.data > 1) json["data"] = options.data;
  for (const LayerPlacement& placement : options.model) json["model"][placement.layers] = placement.device;
  if (const auto& pipeline = options.pipeline) {
    Json& object = json["pipeline"] = Json::object();
    if (pipeline->stages > 0) object["stages"] = pipeline->stages;
    if (!pipeline->first_layers.empty()) object["stages"] = pipeline->first_layers;
    object["micro_batches"] = pipeline->micro_batches;
    object["schedule"] = pipeline_schedule_name(pipeline->schedule);
  }
  return json;
}

std::string parallel_text(const ParallelOptions& options) {
  if (!options.is_parallel()) return kNone;
  std::string text;
  const auto add = [&text](const std::string& part) { text += (text.empty() ? "" : "+") + part; };
  if (options.data > 1) add(fmt::format("data-{}", options.data));
  for (const LayerPlacement& placement : options.model) {
    std::string device = placement.device;
    std::replace(device.begin(), device.end(), ':', '.');  // A ':' would be escaped in the names of runs.
    add(fmt::format("{}-{}", placement.layers, device));
  }
  if (const auto& pipeline = options.pipeline) {
    std::string stages = fmt::format("{}", fmt::join(pipeline->first_layers, "."));
    if (pipeline->stages > 0) stages = std::to_string(pipeline->stages);
    add(fmt::format("pipeline-{}{}{}{}", stages, stages.empty() ? "" : "x", pipeline->micro_batches,
                    pipeline->schedule == PipelineSchedule::kGpipe ? "" : "-1f1b"));
  }
  return text;
}

}  // namespace sweep
