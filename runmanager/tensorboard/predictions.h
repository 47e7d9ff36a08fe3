// The quality of a trained classifier in TensorBoard: confusion matrix, PR curves, misclassified samples.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/data/dataset.h"
#include "tbwriter/image.h"
#include "tbwriter/summary_writer.h"

namespace sweep {

/// The softmax of each row of `outputs`, [rows, classes] row-major. A row with NaN or infinity becomes NaN.
std::vector<float> softmax_rows(std::span<const float> outputs, std::size_t classes);

/// The sigmoid of each output.
std::vector<float> sigmoids_of(std::vector<float> outputs);

/// The place of the largest of `values`, the first of equal ones.
std::size_t largest(std::span<const float> values);

/// A sample that was predicted to be of another class.
struct Misclassified {
  std::size_t sample = 0;  // index within the samples
  std::int32_t label = 0;
  std::int32_t predicted = 0;
  float confidence = 0;  // the predicted class's probability
};

/// counts[label * classes + predicted], [classes, classes]. The first of equal largest outputs is the
/// prediction.
std::vector<std::int64_t> confusion_matrix(std::span<const float> outputs,
                                           std::span<const std::int32_t> labels, std::size_t classes);

/// Up to `limit` misclassified samples, the most confident first; equal ones in the order of the samples.
/// `probabilities`: [labels.size(), classes] row-major.
std::vector<Misclassified> most_confident_mistakes(std::span<const float> probabilities,
                                                   std::span<const std::int32_t> labels, std::size_t classes,
                                                   std::size_t limit);

/// An image of the matrix, [names.size(), names.size()], with a row per label and a column per prediction,
/// with the classes' names. A cell shows its count, and is darker the larger its part of the row.
tbwriter::EncodedImage draw_confusion_matrix(std::span<const std::int64_t> counts,
                                             std::span<const std::string> names);

/// Writes everything about the predictions to `writer` at `step`: pr_curve/<class>,
/// predictions/confusion_matrix and predictions/misclassified, and the same as text. `outputs` is
/// [samples.count, classes] before softmax or sigmoid; `part` names the samples ("validation").
/// `by_sigmoid`: a class's probability is the sigmoid of its own output, as bce_with_logits means several
/// outputs; else the softmax. With more than 1,000 classes it writes only the pictures, and of large pictures
/// fewer.
void log_predictions(tbwriter::SummaryWriter& writer, const Subset& samples, std::span<const float> outputs,
                     std::span<const std::string> class_names, std::string_view part, std::int64_t step,
                     bool by_sigmoid = false);

}  // namespace sweep
