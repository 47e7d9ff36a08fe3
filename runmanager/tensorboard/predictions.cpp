#include "runmanager/tensorboard/predictions.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "runmanager/tensorboard/captioned_grid.h"
#include "runmanager/text/table_text.h"
#include "tbwriter/canvas.h"

namespace sweep {
namespace {

using tbwriter::text_width;

constexpr std::size_t kShownMistakes = 32, kMistakesPerRow = 4;
// With more classes, nobody can read the matrix, which would not fit into a record.
constexpr std::size_t kMaxClasses = 1000;

// The palette: shades from white for 0 to dark blue for 1, then one grey for lines and one for digits on
// white.
constexpr std::size_t kShades = 254;
constexpr tbwriter::Color kWhite = {0}, kLineColor = {kShades}, kInkColor = {kShades + 1};

std::vector<tbwriter::Color> palette() {
  std::vector<tbwriter::Color> colors;
  for (std::size_t i = 0; i < kShades; ++i) {
    const double t = static_cast<double>(i) / (kShades - 1);
    const auto mix = [t](double to) { return static_cast<std::uint8_t>(std::lround(255 + t * (to - 255))); };
    colors.push_back({mix(8), mix(48), mix(107)});
  }
  colors.push_back({214, 214, 214});
  colors.push_back({40, 40, 40});
  return colors;
}

// The palette index for a part of a row, in [0, 1]. The square root keeps the few mistakes of a good network
// visible.
tbwriter::Color shade(double part) {
  return {static_cast<std::uint8_t>(std::lround(std::sqrt(part) * (kShades - 1)))};
}

// Longer names of classes would leave no room for the matrix.
constexpr std::int64_t kWidestLabel = 128;
// With more classes only the shades are drawn: there is no room for letters.
constexpr std::size_t kMaxNamed = 200;

std::string confusion_table(std::span<const std::int64_t> counts, std::span<const std::string> names,
                            std::string_view part) {
  std::vector<std::vector<std::string>> rows;
  std::vector<std::string> header = {"label \\ predicted"};
  header.insert(header.end(), names.begin(), names.end());
  header.push_back("right");
  const std::size_t classes = names.size();
  for (std::size_t label = 0; label < classes; ++label) {
    std::vector<std::string> row = {names[label]};
    std::int64_t total = 0;
    for (std::size_t predicted = 0; predicted < classes; ++predicted) {
      total += counts[label * classes + predicted];
      row.push_back(std::to_string(counts[label * classes + predicted]));
    }
    row.push_back(total == 0
                      ? ""
                      : fmt::format("{:.1f} %", 100.0 * static_cast<double>(counts[label * classes + label]) /
                                                    static_cast<double>(total)));
    rows.push_back(std::move(row));
  }
  return fmt::format("Samples of the {} set.\n\n", part) + markdown_table(header, rows);
}

std::string mistakes_table(std::span<const Misclassified> mistakes, std::span<const std::string> names) {
  std::vector<std::vector<std::string>> rows;
  for (const Misclassified& m : mistakes) {
    rows.push_back({std::to_string(rows.size() / kMistakesPerRow + 1),
                    std::to_string(rows.size() % kMistakesPerRow + 1), std::to_string(m.sample),
                    names[static_cast<std::size_t>(m.label)], names[static_cast<std::size_t>(m.predicted)],
                    fmt::format("{:.1f} %", 100 * m.confidence)});
  }
  return "The pictures of predictions/misclassified, the most confident mistake first.\n\n" +
         markdown_table({"row", "column", "sample", "label", "predicted", "confidence"}, rows);
}

tbwriter::EncodedImage draw_mistakes(const Subset& samples, std::span<const Misclassified> mistakes,
                                     std::span<const std::string> names) {
  std::vector<std::uint8_t> pixels;
  std::vector<std::string> captions;
  for (const Misclassified& m : mistakes) {
    std::visit(
        [&](const auto& sample) {
          for (const auto value : sample) pixels.push_back(tbwriter::to_byte(value));
        },
        samples.set->sample(samples.row(m.sample)));
    captions.push_back(fmt::format("{} \u2192\n{} {:.0f} %", names[static_cast<std::size_t>(m.label)],
                                   names[static_cast<std::size_t>(m.predicted)], 100 * m.confidence));
  }
  return draw_captioned_grid(pixels,
                             {.count = static_cast<std::int64_t>(mistakes.size()),
                              .channels = samples.set->shape.at(0),
                              .height = samples.set->shape.at(1),
                              .width = samples.set->shape.at(2)},
                             captions, kMistakesPerRow);
}

}  // namespace

std::size_t largest(std::span<const float> values) {
  return static_cast<std::size_t>(std::ranges::max_element(values) - values.begin());
}

std::vector<float> sigmoids_of(std::vector<float> outputs) {
  for (float& value : outputs) value = 1 / (1 + std::exp(-value));
  return outputs;
}

std::vector<float> softmax_rows(std::span<const float> outputs, std::size_t classes) {
  std::vector<float> probabilities(outputs.size());
  for (std::size_t first = 0; first + classes <= outputs.size(); first += classes) {
    const auto row = outputs.subspan(first, classes);
    const std::span<float> powers = std::span(probabilities).subspan(first, classes);
    const float peak = *std::max_element(row.begin(), row.end());
    double total = 0;
    for (std::size_t c = 0; c < classes; ++c) {
      powers[c] = std::exp(row[c] - peak);
      total += static_cast<double>(powers[c]);
    }
    const auto scale = static_cast<float>(1 / total);
    for (float& power : powers) power = std::min(power * scale, 1.0f);  // NaN stays
  }
  return probabilities;
}

std::vector<std::int64_t> confusion_matrix(std::span<const float> outputs,
                                           std::span<const std::int32_t> labels, std::size_t classes) {
  std::vector<std::int64_t> counts(classes * classes, 0);
  for (std::size_t i = 0; i < labels.size(); ++i) {
    ++counts[static_cast<std::size_t>(labels[i]) * classes + largest(outputs.subspan(i * classes, classes))];
  }
  return counts;
}

std::vector<Misclassified> most_confident_mistakes(std::span<const float> probabilities,
                                                   std::span<const std::int32_t> labels, std::size_t classes,
                                                   std::size_t limit) {
  std::vector<Misclassified> mistakes;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const auto row = probabilities.subspan(i * classes, classes);
    const auto predicted = static_cast<std::int32_t>(largest(row));
    if (predicted != labels[i])
      mistakes.push_back({i, labels[i], predicted, row[static_cast<std::size_t>(predicted)]});
  }
  std::stable_sort(mistakes.begin(), mistakes.end(), [](const Misclassified& a, const Misclassified& b) {
    return a.confidence > b.confidence;
  });
  if (mistakes.size() > limit) mistakes.resize(limit);
  return mistakes;
}

tbwriter::EncodedImage draw_confusion_matrix(std::span<const std::int64_t> counts,
                                             std::span<const std::string> names) {
  const std::size_t classes = names.size();
  const std::int64_t widest = counts.empty() ? 0 : *std::max_element(counts.begin(), counts.end());
  const bool has_text = classes <= kMaxNamed;
  constexpr std::int64_t kLine = 1, kMargin = 4, kSmallCell = 4, kLetter = tbwriter::kLetterHeight;
  const std::int64_t cell =
      has_text ? std::max(text_width(std::to_string(widest)) + 4, kLetter + 2) : kSmallCell;
  std::vector<std::string> labels;
  std::int64_t label_width = 0;
  for (const std::string& name : has_text ? names : std::span<const std::string>()) {
    labels.push_back(cut_text(name, kWidestLabel));
    label_width = std::max(label_width, text_width(labels.back()));
  }
  // Left and above: the classes' names, and outside of them what rows and columns are.
  const std::int64_t edge = kLetter + kMargin + label_width + 2 * kMargin;
  const std::int64_t side = static_cast<std::int64_t>(classes) * (cell + kLine) + kLine;
  const tbwriter::ImageSize whole = {.height = edge + side, .width = edge + side};
  tbwriter::Canvas canvas(whole, kWhite[0]);
  canvas.fill(edge, edge, edge + side - 1, edge + side - 1, kLineColor);
  const auto centred = [&](std::int64_t width) { return edge + (side > width ? (side - width) / 2 : 0); };
  constexpr std::string_view kColumns = "predicted", kRows = "label";
  if (text_width(kColumns) <= side) {
    canvas.write(kColumns, centred(text_width(kColumns)), 0, kInkColor);
    canvas.write_upwards(kRows, 0, centred(text_width(kRows)) + text_width(kRows), kInkColor);
  }
  for (std::size_t label = 0; label < classes; ++label) {
    const std::int64_t begin = edge + kLine + static_cast<std::int64_t>(label) * (cell + kLine);
    const std::int64_t middle = begin + (has_text ? (cell - kLetter) / 2 : 0);
    if (has_text) {
      canvas.write(labels[label], edge - kMargin - text_width(labels[label]), middle, kInkColor);
      canvas.write_upwards(labels[label], middle, edge - kMargin, kInkColor);
    }
    std::int64_t total = 0;
    for (std::size_t c = 0; c < classes; ++c) total += counts[label * classes + c];
    for (std::size_t c = 0; c < classes; ++c) {
      const std::int64_t count = counts[label * classes + c];
      const double part = total == 0 ? 0 : static_cast<double>(count) / static_cast<double>(total);
      const std::int64_t left = edge + kLine + static_cast<std::int64_t>(c) * (cell + kLine);
      canvas.fill(left, begin, left + cell - 1, begin + cell - 1, shade(part));
      if (count == 0 || !has_text) continue;
      const std::string number = std::to_string(count);
      canvas.write(number, left + (cell - text_width(number) + 1) / 2, middle,
                   part > 0.25 ? kWhite : kInkColor);
    }
  }
  return tbwriter::encode_drawing(canvas.pixels, whole, palette());
}

namespace {

void log_curves(tbwriter::SummaryWriter& writer, std::span<const float> probabilities,
                std::span<const std::int32_t> labels, std::size_t classes, std::span<const std::string> names,
                std::string_view part, std::int64_t step) {
  std::vector<std::uint8_t> is_class(labels.size());
  std::vector<float> scores(labels.size());
  for (std::size_t c = 0; c < std::min(classes, names.size()); ++c) {
    for (std::size_t i = 0; i < labels.size(); ++i) {
      is_class[i] = labels[i] == static_cast<std::int32_t>(c);
      scores[i] = probabilities[i * classes + c];
    }
    writer.add_pr_curve("pr_curve/" + names[c], is_class, scores, step, 127,
                        {.description = fmt::format("{} against the rest, {} set", names[c], part)});
  }
}

void log_confusion(tbwriter::SummaryWriter& writer, std::span<const float> outputs,
                   std::span<const std::int32_t> labels, std::span<const std::string> names,
                   std::string_view part, std::int64_t step) {
  const std::vector<std::int64_t> counts = confusion_matrix(outputs, labels, names.size());
  const std::string description = fmt::format("Rows: label, columns: prediction; {} set.", part);
  writer.add_image("predictions/confusion_matrix", draw_confusion_matrix(counts, names), step,
                   {.description = description});
  writer.add_text("predictions/confusion_counts", confusion_table(counts, names, part), step);
}

}  // namespace

void log_predictions(tbwriter::SummaryWriter& writer, const Subset& samples, std::span<const float> outputs,
                     std::span<const std::string> class_names, std::string_view part, std::int64_t step,
                     bool by_sigmoid) {
  if (samples.count == 0) return;
  const std::size_t classes = outputs.size() / samples.count;
  // A network may have more outputs than the data has classes.
  std::vector<std::string> names(class_names.begin(), class_names.end());
  for (std::size_t c = names.size(); c < classes; ++c) names.push_back(fmt::format("output {}", c));
  const std::vector<std::int32_t> labels = samples.labels();
  const std::vector<float> probabilities =
      by_sigmoid ? sigmoids_of({outputs.begin(), outputs.end()}) : softmax_rows(outputs, classes);
  if (!std::all_of(probabilities.begin(), probabilities.end(), [](float p) { return std::isfinite(p); }))
    return;
  if (classes <= kMaxClasses) {
    log_curves(writer, probabilities, labels, classes, class_names, part, step);
    log_confusion(writer, outputs, labels, names, part, step);
  }
  const Shape& shape = samples.set->shape;
  if (!is_picture(shape)) return;
  const std::vector<Misclassified> mistakes =
      most_confident_mistakes(probabilities, labels, classes, shown_pictures(shape, kShownMistakes));
  if (mistakes.empty()) return;
  writer.add_image("predictions/misclassified", draw_mistakes(samples, mistakes, names), step);
  writer.add_text("predictions/misclassified_list", mistakes_table(mistakes, names), step);
}

}  // namespace sweep
