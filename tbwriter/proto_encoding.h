// Encodes the protobuf messages inside events: graphs, hyperparameters, layouts, tensors, metadata. Each
// function returns the serialised message that it names. Thread-safe. Not part of the installed interface.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "tbwriter/graph.h"
#include "tbwriter/histogram.h"
#include "tbwriter/hparams.h"
#include "tbwriter/image.h"
#include "tbwriter/layout.h"
#include "tbwriter/mesh.h"

namespace sweep::tbwriter {

/// TensorFlow's DataType: of the numbers in a TensorProto, and of a node's output.
enum DataType : int { kDtFloat = 1, kDtDouble = 2, kDtInt32 = 3, kDtUint8 = 4, kDtString = 7, kDtInt64 = 9 };

/// SummaryMetadata.data_class.
enum class DataClass { kScalar = 1, kTensor = 2, kBlobs = 3 };

/// SummaryMetadata. `content` is the plugin's serialised message.
std::string encode_metadata(std::string_view plugin, std::string_view content, DataClass data_class,
                            std::string_view display_name, std::string_view description);

std::string encode_histogram(const Histogram& histogram);                 // HistogramProto
std::string encode_image_message(const EncodedImage& image);              // Summary.Image
std::string encode_text_tensor(std::string_view text);                    // TensorProto, DT_STRING, rank 0
std::string encode_strings_tensor(std::span<const std::string> strings);  // TensorProto, DT_STRING, rank 1
/// `bytes`: the values in row-major order.
std::string encode_tensor(DataType type, std::string_view bytes,
                          std::span<const std::int64_t> shape);  // TensorProto
std::string encode_float_tensor(std::span<const float> values,
                                std::span<const std::int64_t> shape);  // TensorProto

std::string encode_audio_message(std::string_view wav, std::int64_t sample_rate, std::int64_t channels,
                                 std::int64_t frames);  // Summary.Audio

/// Throws UsageError if sizes of the mesh do not match or an index of a face is out of range.
void check_mesh(const Mesh& mesh);

/// MeshPluginData. `content_type`: 1 vertices, 2 faces, 3 colours. `components` is the bit mask of the types
/// that the mesh has.
std::string encode_mesh_content(std::string_view name, int content_type, std::span<const std::int64_t> shape,
                                int components, std::string_view config);

/// GraphDef, with `_output_shapes` for the edges and a readable "output_shapes" in the cards. Throws
/// UsageError for an empty or duplicate name, and an input that is not the name of a node.
std::string encode_graph(const Graph& graph);

/// RunMetadata: time and memory of each node in one step.
std::string encode_step_stats(std::span<const NodeProfile> nodes);

std::string encode_session_start(const HParams& hparams, double start_time);         // HParamsPluginData
std::string encode_session_end(SessionStatus status, double end_time);               // HParamsPluginData
std::string encode_experiment(const HParamsExperiment& experiment, double created);  // HParamsPluginData

std::string encode_layout(const CustomScalarsLayout& layout);  // Layout

}  // namespace sweep::tbwriter
