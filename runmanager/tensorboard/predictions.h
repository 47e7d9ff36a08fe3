// What a trained classifier gets right and wrong: confusion matrix, PR curves, misclassified samples.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/data/dataset.h"
#include "tbwriter/image.h"
#include "tbwriter/summary_writer.h"

namespace sweep {

/// Softmax of each row, [rows, classes] row-major. A row that is not finite becomes NaN.
std::vector<float> softmax_rows(std::span<const float> outputs, std::size_t classes);

/// One sample that was put into a wrong class.
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

/// The wrong ones, most confident first (then by sample), at most `limit`.
std::vector<Misclassified> most_confident_mistakes(std::span<const float> probabilities,
                                                   std::span<const std::int32_t> labels, std::size_t classes,
                                                   std::size_t limit);

/// A picture of the matrix: a row per label, a column per prediction, darker for a larger part of its row,
/// with the count in each cell.
tbwriter::EncodedImage draw_confusion_matrix(std::span<const std::int64_t> counts, std::size_t classes);

/// Writes everything about the predictions to `writer` at `step`: pr_curve/<class>,
/// predictions/confusion_matrix and predictions/misclassified, and the same as text. `outputs` is
/// [samples.count, classes] before softmax; `part` names the samples ("validation").
void log_predictions(tbwriter::SummaryWriter& writer, const Samples& samples, std::span<const float> outputs,
                     std::span<const std::string> class_names, std::string_view part, std::int64_t step);

}  // namespace sweep
