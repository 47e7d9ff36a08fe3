// Encodes the protobuf messages inside events: what SummaryWriter adds, kind by kind. Each encode_ function
// returns the serialised message that it names. Thread-safe. Not part of the installed interface.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tbwriter/histogram.h"
#include "tbwriter/image.h"
#include "tbwriter/plugin_data.h"

namespace sweep::tbwriter {

/// TensorFlow's DataType: of the numbers in a TensorProto, and of a node's output.
inline constexpr int kDtFloat = 1, kDtDouble = 2, kDtInt32 = 3, kDtUint8 = 4, kDtString = 7, kDtInt64 = 9,
                     kDtHalf = 19;

/// SummaryMetadata.data_class.
enum class DataClass { kScalar = 1, kTensor = 2, kBlobs = 3 };

/// SummaryMetadata. `content` is the plugin's serialised message.
std::string encode_metadata(std::string_view plugin, std::string_view content, DataClass data_class,
                            std::string_view display_name, std::string_view description);

std::string encode_shape(std::span<const std::int64_t> extents);  // TensorShapeProto

/// TensorProto, values in row-major order. bfloat16 becomes float.
std::string encode_tensor(const Values& values, std::span<const std::int64_t> shape);
/// TensorProto, DT_STRING.
std::string encode_strings(const std::vector<std::string_view>& strings, std::span<const std::int64_t> shape);

std::string encode_histogram(Histogram histogram);            // HistogramProto
std::string encode_image_message(const EncodedImage& image);  // Summary.Image

/// Summary.Audio with a WAV file of 16-bit PCM; a sample that is NaN becomes 0. Throws UsageError as
/// SummaryWriter::add_audio() does, also for an incomplete frame, and for more samples than a WAV file can
/// hold.
std::string encode_audio(std::span<const float> samples, std::int64_t sample_rate, std::int64_t channels);

/// Returns [6, thresholds]: true positives, false positives, true negatives, false negatives, precision,
/// recall at the thresholds i / (thresholds − 1). A score is positive if it is not below the threshold.
/// Throws UsageError as SummaryWriter::add_pr_curve() does.
std::vector<float> make_pr_curve(std::span<const std::uint8_t> labels, std::span<const float> scores,
                                 std::span<const float> weights, int thresholds);

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

/// Writes tensor, labels and sprite to `<directory>/<tag>/<step>/` and adds them to `projector_config.pbtxt`,
/// which is replaced atomically. Parameters and errors are those of SummaryWriter::add_embedding(). Not
/// thread-safe for the same directory.
void write_embedding(const std::filesystem::path& directory, std::string_view tag,
                     std::span<const float> points, std::int64_t dimensions, const EmbeddingLabels& labels,
                     const EmbeddingPictures& pictures, std::int64_t step);

}  // namespace sweep::tbwriter
