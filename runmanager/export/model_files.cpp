#include "runmanager/export/model_files.h"

#include <bit>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/base/file.h"
#include "proto/onnx.pb.h"
#include "runmanager/records/provenance.h"

namespace sweep {
namespace {

using onnx_format::AttributeProto;
using onnx_format::NodeProto;
using onnx_format::TensorProto;
using Inputs = std::vector<std::string>;

constexpr int kIrVersion = 8;  // that of operator sets 15 and less

static_assert(std::endian::native == std::endian::little, "raw_data is little-endian");

AttributeProto& add_attribute(NodeProto& node, const char* name, AttributeProto::AttributeType type) {
  AttributeProto& attribute = *node.add_attribute();
  attribute.set_name(name);
  attribute.set_type(type);
  return attribute;
}

void set_integer(NodeProto& node, const char* name, std::int64_t value) {
  add_attribute(node, name, AttributeProto::INT).set_i(value);
}

void set_number(NodeProto& node, const char* name, double value) {
  add_attribute(node, name, AttributeProto::FLOAT).set_f(static_cast<float>(value));
}

void set_integers(NodeProto& node, const char* name, std::initializer_list<std::int64_t> values) {
  AttributeProto& attribute = add_attribute(node, name, AttributeProto::INTS);
  for (const std::int64_t value : values) attribute.add_ints(value);
}

// Kernel, stride and padding of a convolution or pooling.
void set_window(NodeProto& node, const layers::Window& window) {
  const auto& [kernel, stride, padding] = window;
  set_integers(node, "kernel_shape", {kernel[0], kernel[1]});
  set_integers(node, "strides", {stride[0], stride[1]});
  set_integers(node, "pads", {padding[0], padding[1], padding[0], padding[1]});  // top, left, bottom, right
}

// [out, in], or its transpose: row i averages the inputs floor(i in / out) … ceil((i + 1) in / out) − 1, as
// PyTorch's adaptive pooling does in each direction.
std::vector<float> averaging_matrix(std::int64_t in, std::int64_t out, bool transposed) {
  std::vector<float> matrix(static_cast<std::size_t>(in * out));
  for (std::int64_t i = 0; i < out; ++i) {
    const std::int64_t begin = i * in / out, end = ((i + 1) * in + out - 1) / out;
    for (std::int64_t j = begin; j < end; ++j)
      matrix[static_cast<std::size_t>(transposed ? j * out + i : i * in + j)] =
          1.0f / static_cast<float>(end - begin);
  }
  return matrix;
}

class GraphBuilder {
 public:
  GraphBuilder(const Network& network, const Weights& weights) : network_(network), weights_(weights) {
    graph_.set_name(network.name());
  }

  onnx_format::GraphProto build(const SampleFormat& format) {
    declare(*graph_.add_input(), kOnnxInput, format.shape);
    declare(*graph_.add_output(), kOnnxOutput, network_.output());
    add_transform(format);
    for (const Layer& layer : network_.layers()) {
      std::vector<std::string> inputs;
      for (const std::size_t i : layer.inputs)
        inputs.push_back(i == kNetworkInput ? normalised_ : outputs_.at(i));
      outputs_.push_back(add_layer(layer, inputs));
    }
    name_output(outputs_.back());
    return std::move(graph_);
  }

 private:
  static void declare(onnx_format::ValueInfoProto& value, const char* name, const Shape& shape) {
    value.set_name(name);
    onnx_format::TypeProto::Tensor& type = *value.mutable_type()->mutable_tensor_type();
    type.set_elem_type(TensorProto::FLOAT);
    type.mutable_shape()->add_dim()->set_dim_param("batch");
    for (const std::int64_t extent : shape) type.mutable_shape()->add_dim()->set_dim_value(extent);
  }

  // Returns `name`.
  std::string constant(const std::string& name, const Shape& shape, std::span<const float> values) {
    TensorProto& tensor = *graph_.add_initializer();
    tensor.set_name(name);
    tensor.set_data_type(TensorProto::FLOAT);
    for (const std::int64_t extent : shape) tensor.add_dims(extent);
    tensor.set_raw_data(values.data(), values.size_bytes());
    return name;
  }
  std::string constant(const std::string& name, float value) { return constant(name, {}, {&value, 1}); }

  // Layers' names have no '/', so that no two values get the same name.
  NodeProto& node(const char* type, const std::string& name, const Inputs& inputs) {
    NodeProto& node = *graph_.add_node();
    node.set_op_type(type);
    node.set_name(name);
    for (const std::string& input : inputs) node.add_input(input);
    node.add_output(name + "/output");
    return node;
  }
  // Adds a node without attributes and returns its output.
  std::string apply(const char* type, const std::string& name, const Inputs& inputs) {
    return node(type, name, inputs).output(0);
  }

  void add_transform(const SampleFormat& format) {
    normalised_ = kOnnxInput;
    if (format.bytes) normalised_ = apply("Div", "/bytes", {normalised_, constant("/bytes/largest", 255)});
    Shape shape(format.shape.size(), 1);
    shape.front() = format.shape.front();
    if (!format.fill_values.empty()) {
      const std::string missing = apply("IsNaN", "/missing", {normalised_});
      const std::string fill = constant("/filled/values", shape, format.fill_values);
      normalised_ = apply("Where", "/filled", {missing, fill, normalised_});
    }
    const InputTransform& transform = format.transform;
    if (transform.mean.empty()) return;
    normalised_ = apply("Sub", "/mean", {normalised_, constant("/mean/values", shape, transform.mean)});
    normalised_ = apply("Div", "/std", {normalised_, constant("/std/values", shape, transform.std)});
  }

  // Returns a layer's input, followed by its arrays.
  Inputs with_arrays(const std::string& input, std::span<const std::size_t> indices,
                     std::span<const Parameter> layout, std::span<const float> values) {
    Inputs inputs = {input};
    for (const std::size_t i : indices) {
      const Parameter& array = layout[i];
      inputs.push_back(constant(array.name, array.shape, values.subspan(array.offset, array.count)));
    }
    return inputs;
  }
  Inputs with_parameters(const Layer& layer, const std::string& input) {
    return with_arrays(input, layer.parameters, network_.parameters(), weights_.parameters);
  }

  std::string add(const Layer& layer, const layers::BatchNorm2d& batch_norm, const Inputs& values) {
    Inputs inputs = with_parameters(layer, values.front());
    if (layer.parameters.empty()) {
      const auto channels = static_cast<std::size_t>(layer.input[0]);
      inputs.push_back(constant(layer.name + ".weight", {layer.input[0]}, std::vector<float>(channels, 1)));
      inputs.push_back(constant(layer.name + ".bias", {layer.input[0]}, std::vector<float>(channels, 0)));
    }
    const Inputs statistics = with_arrays("", layer.buffers, network_.buffers(), weights_.buffers);
    inputs.insert(inputs.end(), statistics.begin() + 1, statistics.end());
    NodeProto& norm = node("BatchNormalization", layer.name, inputs);
    set_number(norm, "epsilon", batch_norm.eps);
    return norm.output(0);
  }

  // Windows of different sizes are no pooling of ONNX's; averages along rows and columns are products.
  std::string add(const Layer& layer, const layers::AdaptiveAvgPool2d&, const Inputs& inputs) {
    const std::string& input = inputs.front();
    const std::int64_t height = layer.input[1], width = layer.input[2], rows = layer.output[1],
                       columns = layer.output[2];
    if (rows == 1 && columns == 1) return apply("GlobalAveragePool", layer.name, {input});
    if (height % rows == 0 && width % columns == 0) {
      NodeProto& pool = node("AveragePool", layer.name, {input});
      const layers::HeightWidth size = {height / rows, width / columns};
      set_window(pool, {size, size, {0, 0}});
      return pool.output(0);
    }
    const std::string& name = layer.name;
    const std::vector<float> across = averaging_matrix(width, columns, true),
                             down = averaging_matrix(height, rows, false);
    const std::string averaged = apply("MatMul", name + "/columns",
                                       {input, constant(name + "/columns/matrix", {width, columns}, across)});
    return apply("MatMul", name, {constant(name + "/rows/matrix", {rows, height}, down), averaged});
  }

  // x Φ(x) = x (erf(x / √2) + 1) / 2: the operator itself is in newer operator sets only.
  std::string add_gelu(const std::string& name, const std::string& input) {
    const std::string scaled =
        apply("Div", name + "/scaled", {input, constant(name + "/root", std::sqrt(2.0f))});
    const std::string erf = apply("Erf", name + "/erf", {scaled});
    const std::string sum = apply("Add", name + "/sum", {erf, constant(name + "/one", 1)});
    const std::string product = apply("Mul", name + "/product", {input, sum});
    return apply("Mul", name, {product, constant(name + "/half", 0.5f)});
  }

  std::string add(const Layer& layer, const layers::Activated& activated, const Inputs& inputs) {
    const std::string& input = inputs.front();
    switch (activated.function) {
      case Activation::kRelu:
        return apply("Relu", layer.name, inputs);
      case Activation::kTanh:
        return apply("Tanh", layer.name, inputs);
      case Activation::kSigmoid:
        return apply("Sigmoid", layer.name, inputs);
      case Activation::kGelu:
        return add_gelu(layer.name, input);
      case Activation::kSilu:
        return apply("Mul", layer.name, {input, apply("Sigmoid", layer.name + "/sigmoid", {input})});
      case Activation::kLeakyRelu:
        break;
    }
    NodeProto& leaky = node("LeakyRelu", layer.name, {input});
    set_number(leaky, "alpha", static_cast<double>(activated.coefficient));
    return leaky.output(0);
  }

  std::string add(const Layer& layer, const layers::Conv2d& convolution, const Inputs& inputs) {
    NodeProto& conv = node("Conv", layer.name, with_parameters(layer, inputs.front()));
    set_window(conv, convolution);
    set_integers(conv, "dilations", {convolution.dilation[0], convolution.dilation[1]});
    set_integer(conv, "group", convolution.groups);
    return conv.output(0);
  }

  std::string add(const Layer& layer, const layers::MaxPool2d& window, const Inputs& inputs) {
    NodeProto& pool = node("MaxPool", layer.name, inputs);
    set_window(pool, window);
    return pool.output(0);
  }

  std::string add(const Layer& layer, const layers::AvgPool2d& window, const Inputs& inputs) {
    NodeProto& pool = node("AveragePool", layer.name, inputs);
    set_window(pool, window);
    set_integer(pool, "count_include_pad", window.count_include_pad ? 1 : 0);
    return pool.output(0);
  }

  std::string add(const Layer&, const layers::Dropout&, const Inputs& inputs) {
    return inputs.front();  // does nothing in evaluation mode
  }

  std::string add(const Layer& layer, const layers::Sum&, const Inputs& inputs) {
    return apply("Add", layer.name, inputs);
  }

  std::string add(const Layer& layer, const layers::Flatten&, const Inputs& inputs) {
    NodeProto& flatten = node("Flatten", layer.name, inputs);
    set_integer(flatten, "axis", 1);
    return flatten.output(0);
  }

  std::string add(const Layer& layer, const layers::Linear&, const Inputs& inputs) {
    NodeProto& linear = node("Gemm", layer.name, with_parameters(layer, inputs.front()));
    set_integer(linear, "transB", 1);
    return linear.output(0);
  }

  // Returns the name of the layer's output.
  std::string add_layer(const Layer& layer, const Inputs& inputs) {
    return std::visit([&](const auto& kind) { return add(layer, kind, inputs); }, layer.kind);
  }

  void name_output(const std::string& last) {
    NodeProto* end = graph_.node_size() > 0 ? graph_.mutable_node(graph_.node_size() - 1) : nullptr;
    if (end == nullptr || end->output(0) != last) end = &node("Identity", "/output", {last});
    end->set_output(0, kOnnxOutput);
  }

  const Network& network_;
  const Weights& weights_;
  onnx_format::GraphProto graph_;
  std::string normalised_;            // the value that the first layers read
  std::vector<std::string> outputs_;  // of the layers
};

}  // namespace

onnx_format::GraphProto onnx_graph(const Network& network, const Weights& weights,
                                   const SampleFormat& format) {
  return GraphBuilder(network, weights).build(format);
}

void write_onnx(const std::filesystem::path& path, const LoadedRun& run) {
  onnx_format::ModelProto model;
  model.set_ir_version(kIrVersion);
  model.set_producer_name("sweep");
  model.set_producer_version(program_version());
  model.add_opset_import()->set_version(kOnnxOperatorSet);
  *model.mutable_graph() = onnx_graph(*run.network, run.weights, run.samples);
  const auto add = [&model](const char* key, std::string value) {
    onnx_format::StringStringEntryProto& entry = *model.add_metadata_props();
    entry.set_key(key);
    entry.set_value(std::move(value));
  };
  add("run", run.record.name);
  add("epoch", std::to_string(run.epoch));
  add("input", to_json(run.samples).dump());
  const bool has_classes = !run.samples.class_names.empty();
  add(has_classes ? "classes" : "targets",
      nlohmann::ordered_json(has_classes ? run.samples.class_names : run.samples.target_names).dump());
  std::string bytes;
  if (model.ByteSizeLong() > static_cast<std::size_t>(std::numeric_limits<int>::max()) ||
      !model.SerializeToString(&bytes)) {
    throw DataError(
        path.string() +
        ": the network is too large for an ONNX file, which holds less than 2 GiB; a .safetensors "
        "file has no such limit");
  }
  write_file_atomically(path, bytes);
}

void write_state_dict(const std::filesystem::path& path, const LoadedRun& run) {
  TensorFileView file = tensors_of(*run.network, run.weights);
  file.metadata = {{"format", "pt"},
                   {"run", run.record.name},
                   {"epoch", std::to_string(run.epoch)},
                   {"input", to_json(run.samples).dump()}};
  write_safetensors(path, file);
}

}  // namespace sweep
