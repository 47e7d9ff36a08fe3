#include "runmanager/tensorboard/predictions.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/base/error.h"
#include "runmanager/records/markdown.h"

namespace sweep {
namespace {

constexpr std::size_t kShownMistakes = 64;

// Digits 0–9, five rows of three pixels each, the leftmost pixel in the highest bit.
constexpr std::array<std::array<std::uint8_t, 5>, 10> kDigits = {{{7, 5, 5, 5, 7},
                                                                  {2, 6, 2, 2, 7},
                                                                  {7, 1, 7, 4, 7},
                                                                  {7, 1, 7, 1, 7},
                                                                  {5, 5, 7, 1, 1},
                                                                  {7, 4, 7, 1, 7},
                                                                  {7, 4, 7, 5, 7},
                                                                  {7, 1, 1, 2, 2},
                                                                  {7, 5, 7, 5, 7},
                                                                  {7, 5, 7, 1, 7}}};

// The palette: shades from white for 0 to dark blue for 1, then one grey for lines and one for digits on
// white.
constexpr std::size_t kShades = 254;
constexpr std::uint8_t kWhite = 0, kLineColor = kShades, kInkColor = kShades + 1;

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
std::uint8_t shade(double part) {
  return static_cast<std::uint8_t>(std::lround(std::sqrt(part) * (kShades - 1)));
}

// An image in colours of the palette.
class Canvas {
 public:
  Canvas(std::size_t width, std::size_t height, std::uint8_t ground)
      : width_(width), height_(height), pixels_(width * height, ground) {}

  // The rectangle must be inside the canvas.
  void fill(std::size_t left, std::size_t top, std::size_t width, std::size_t height, std::uint8_t color) {
    for (std::size_t y = top; y < top + height; ++y)
      std::fill_n(pixels_.begin() + static_cast<std::ptrdiff_t>(y * width_ + left), width, color);
  }

  // Centres the number on (x, y). Each pixel of a digit becomes a square of `scale` pixels.
  void draw_number(std::int64_t number, std::size_t x, std::size_t y, std::size_t scale, std::uint8_t color) {
    const std::string digits = std::to_string(number);
    const std::size_t width = (digits.size() * 4 - 1) * scale;
    std::size_t left = x - width / 2;
    const std::size_t top = y - 5 * scale / 2;
    for (const char digit : digits) {
      for (std::size_t row = 0; row < 5; ++row) {
        for (std::size_t column = 0; column < 3; ++column) {
          const bool on = (kDigits[static_cast<std::size_t>(digit - '0')][row] >> (2 - column)) & 1;
          if (on) fill(left + column * scale, top + row * scale, scale, scale, color);
        }
      }
      left += 4 * scale;
    }
  }

  tbwriter::EncodedImage encode() const {
    return tbwriter::encode_drawing(
        pixels_, {.height = static_cast<std::int64_t>(height_), .width = static_cast<std::int64_t>(width_)},
        palette());
  }

 private:
  std::size_t width_, height_;
  std::vector<std::uint8_t> pixels_;  // [height, width], indices into the palette
};

std::size_t largest(std::span<const float> row) {
  std::size_t best = 0;
  for (std::size_t c = 1; c < row.size(); ++c) {
    if (row[c] > row[best]) best = c;
  }
  return best;
}

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
    rows.push_back({std::to_string(rows.size() / 8 + 1), std::to_string(rows.size() % 8 + 1),
                    std::to_string(m.sample), names[static_cast<std::size_t>(m.label)],
                    names[static_cast<std::size_t>(m.predicted)],
                    fmt::format("{:.1f} %", 100 * m.confidence)});
  }
  return "The pictures of predictions/misclassified, the most confident mistake first.\n\n" +
         markdown_table({"row", "column", "sample", "label", "predicted", "confidence"}, rows);
}

tbwriter::EncodedImage draw_mistakes(const Samples& samples, std::span<const Misclassified> mistakes) {
  const tbwriter::BatchSize size = {.count = static_cast<std::int64_t>(mistakes.size()),
                                    .channels = samples.set->shape.at(0),
                                    .height = samples.set->shape.at(1),
                                    .width = samples.set->shape.at(2)};
  const auto encode = [&]<typename T>(const MaybeOwnedArray<T>& all) {
    const std::size_t values = samples.set->sample_values();
    std::vector<T> shown;
    for (const Misclassified& m : mistakes) {
      const T* first = all.data() + (samples.first + m.sample) * values;
      shown.insert(shown.end(), first, first + values);
    }
    return tbwriter::encode_image_grid(std::span<const T>(shown), size);
  };
  return std::visit(encode, samples.set->samples);
}

bool is_picture(const Shape& shape) { return shape.size() == 3 && (shape[0] == 1 || shape[0] == 3); }

}  // namespace

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

tbwriter::EncodedImage draw_confusion_matrix(std::span<const std::int64_t> counts, std::size_t classes) {
  const std::int64_t widest = counts.empty() ? 0 : *std::max_element(counts.begin(), counts.end());
  const std::size_t scale = classes <= 20 ? 2 : 1;
  const std::size_t cell = (std::to_string(widest).size() * 4 + 5) * scale;
  constexpr std::size_t kLine = 1;
  Canvas canvas(classes * (cell + kLine) + kLine, classes * (cell + kLine) + kLine, kLineColor);
  for (std::size_t label = 0; label < classes; ++label) {
    std::int64_t total = 0;
    for (std::size_t c = 0; c < classes; ++c) total += counts[label * classes + c];
    for (std::size_t c = 0; c < classes; ++c) {
      const std::int64_t count = counts[label * classes + c];
      const double part = total == 0 ? 0 : static_cast<double>(count) / static_cast<double>(total);
      const std::size_t left = kLine + c * (cell + kLine), top = kLine + label * (cell + kLine);
      canvas.fill(left, top, cell, cell, shade(part));
      const std::uint8_t ink = part > 0.25 ? kWhite : kInkColor;
      if (count > 0) canvas.draw_number(count, left + cell / 2, top + cell / 2, scale, ink);
    }
  }
  return canvas.encode();
}

void log_predictions(tbwriter::SummaryWriter& writer, const Samples& samples, std::span<const float> outputs,
                     std::span<const std::string> class_names, std::string_view part, std::int64_t step) {
  if (samples.count == 0) return;
  const std::size_t classes = outputs.size() / samples.count;
  // A network may have more outputs than the data has classes.
  std::vector<std::string> names(class_names.begin(), class_names.end());
  for (std::size_t c = names.size(); c < classes; ++c) names.push_back(fmt::format("output {}", c));
  const auto labels = samples.set->labels().subspan(samples.first, samples.count);
  const std::vector<float> probabilities = softmax_rows(outputs, classes);
  if (!std::all_of(probabilities.begin(), probabilities.end(), [](float p) { return std::isfinite(p); }))
    return;

  std::vector<std::uint8_t> is_class(samples.count);
  std::vector<float> scores(samples.count);
  for (std::size_t c = 0; c < std::min(classes, class_names.size()); ++c) {
    for (std::size_t i = 0; i < samples.count; ++i) {
      is_class[i] = labels[i] == static_cast<std::int32_t>(c);
      scores[i] = probabilities[i * classes + c];
    }
    writer.add_pr_curve("pr_curve/" + names[c], is_class, scores, step, 127,
                        {.description = fmt::format("{} against the rest, {} set", names[c], part)});
  }
  const std::vector<std::int64_t> counts = confusion_matrix(outputs, labels, classes);
  const std::string description =
      fmt::format("Rows: label, columns: prediction, in the order of the classes; {} set.", part);
  writer.add_image("predictions/confusion_matrix", draw_confusion_matrix(counts, classes), step,
                   {.description = description});
  writer.add_text("predictions/confusion_counts", confusion_table(counts, names, part), step);
  const std::vector<Misclassified> mistakes =
      most_confident_mistakes(probabilities, labels, classes, kShownMistakes);
  if (mistakes.empty() || !is_picture(samples.set->shape)) return;
  writer.add_image("predictions/misclassified", draw_mistakes(samples, mistakes), step);
  writer.add_text("predictions/misclassified_list", mistakes_table(mistakes, names), step);
}

}  // namespace sweep
