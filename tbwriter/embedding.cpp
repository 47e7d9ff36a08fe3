// The projector reads separate files, not events. Tensors are written as text, because TensorBoard would take
// a binary tensor that happens to be valid UTF-8 for text.
#include <charconv>
#include <cmath>
#include <system_error>

#include "core/base/file.h"
#include "core/base/utf8.h"
#include "tbwriter/summary_writer_state.h"

namespace sweep::tbwriter {
namespace {

constexpr std::int64_t kMaxSprite = 8192;  // pixels each way; the largest texture of common browsers

void check(std::span<const float> points, std::int64_t dimensions, const EmbeddingLabels& labels,
           const EmbeddingPictures& pictures) {
  require(dimensions >= 1 && !points.empty() && points.size() % static_cast<std::size_t>(dimensions) == 0,
          "an embedding of ", points.size(), " values is no whole number of points of ", dimensions,
          " dimensions");
  const std::size_t count = points.size() / static_cast<std::size_t>(dimensions);
  const std::size_t rows = labels.rows.empty() ? count : labels.rows.size();
  require(rows == count, "an embedding of ", count, " points has ", rows, " rows of labels");
  require(pictures.pixels.empty() || static_cast<std::size_t>(pictures.size.count) == count,
          "an embedding of ", count, " points has ", pictures.size.count, " pictures");
  const std::size_t columns = labels.header.empty() ? 1 : labels.header.size();
  for (const auto& row : labels.rows)
    require(row.size() == columns, "a row of an embedding's labels has ", row.size(),
            " columns, but the header ", columns);
}

std::string tensor_tsv(std::span<const float> points, std::size_t dimensions) {
  std::string text;
  for (std::size_t i = 0; i < points.size(); ++i) {
    char number[32];
    // The projector cannot display values that are not finite.
    const float value = std::isfinite(points[i]) ? points[i] : 0.0f;
    const auto end = std::to_chars(number, number + sizeof number, value).ptr;
    text.append(number, end);
    text.push_back((i + 1) % dimensions == 0 ? '\n' : '\t');
  }
  return text;
}

std::string labels_tsv(const EmbeddingLabels& labels) {
  std::string text;
  const auto add_row = [&](const std::vector<std::string>& row) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      std::string cell = valid_utf8(row[i]);
      for (char& c : cell) {
        if (c == '\t' || c == '\n' || c == '\r') c = ' ';
      }
      line += (i > 0 ? "\t" : "") + cell;
    }
    // The projector skips a blank line, and has one label too few for its points. This has no width.
    if (line.find_first_not_of(" \t\v\f") == std::string::npos) line.insert(0, "\u200b");
    text += line + "\n";
  };
  if (labels.header.size() >= 2)
    add_row(labels.header);  // With a single column, the projector would take the header for a label.
  for (const auto& row : labels.rows) add_row(row);
  return text;
}

// A directory name that stays inside the run's directory and differs for each tag: "a%2fb" for "a/b", as
// PyTorch's.
std::string directory_name(std::string_view tag) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string name;
  for (const char c : valid_utf8(tag)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || c == '/' || c == '\\' || c == '"' || c == '%' || (c == '.' && name.empty())) {
      name += {'%', kDigits[byte >> 4], kDigits[byte & 15]};
    } else {
      name += c;
    }
  }
  return name;
}

// The step has at least five digits, as in PyTorch; TensorBoard would strip ":0".
std::string tensor_name(std::string_view tag, std::int64_t step) {
  const std::string number = std::to_string(step);
  return directory_name(tag) + ":" + std::string(number.size() < 5 ? 5 - number.size() : 0, '0') + number;
}

std::string entry_begin(const std::string& name) { return "embeddings {\n  tensor_name: \"" + name + "\"\n"; }

// What the projector reads so far; "" if there is no such file.
std::string read_config(const std::filesystem::path& config) {
  std::error_code error;
  const bool exists = std::filesystem::exists(config, error);
  if (error) throw IoError(config.string() + ": cannot be looked for: " + error.message());
  try {
    return exists ? read_file(config) : "";
  } catch (const DataError& unreadable) {
    throw IoError(unreadable.what());
  }
}

// The text without its entry of this tensor, which a second one would not replace.
std::string without_entry(std::string text, const std::string& name) {
  constexpr std::string_view kEnd = "\n}\n";
  const std::size_t begin = text.find(entry_begin(name));
  if (begin == std::string::npos) return text;
  const std::size_t end = text.find(kEnd, begin);
  if (end != std::string::npos) text.erase(begin, end + kEnd.size() - begin);
  return text;
}

std::string config_entry(const std::string& folder, const std::string& name, bool has_labels, bool has_sprite,
                         const BatchSize& picture) {
  std::string text = entry_begin(name) + "  tensor_path: \"" + folder + "/tensors.tsv\"\n";
  if (has_labels) text += "  metadata_path: \"" + folder + "/metadata.tsv\"\n";
  if (has_sprite) {
    text += "  sprite {\n    image_path: \"" + folder +
            "/sprite.png\"\n    single_image_dim: " + std::to_string(picture.width) +
            "\n    single_image_dim: " + std::to_string(picture.height) + "\n  }\n";
  }
  return text + "}\n";
}

}  // namespace

void SummaryWriter::add_embedding(std::string_view tag, std::span<const float> points,
                                  std::int64_t dimensions, const EmbeddingLabels& labels,
                                  const EmbeddingPictures& pictures, std::int64_t step) {
  const std::lock_guard lock(state_->mutex);  // what the projector reads is read, extended and replaced
  state_->check_open(tag);
  check(points, dimensions, labels, pictures);
  EncodedImage sprite;
  if (!pictures.pixels.empty()) {
    // TensorBoard expects the smallest square grid that holds all pictures.
    const auto side =
        static_cast<std::int64_t>(std::ceil(std::sqrt(static_cast<double>(pictures.size.count))));
    require(
        side * std::max(pictures.size.height, pictures.size.width) <= kMaxSprite,
        "an embedding's pictures would make a sprite of more than 8192 pixels; use fewer or smaller ones");
    sprite = encode_image_grid(pictures.pixels, pictures.size,
                               {.columns = static_cast<int>(side), .padding = 0, .background = 255});
  }
  const std::string folder = directory_name(tag) + "/" + std::to_string(step);
  const std::filesystem::path place = log_dir() / folder;
  make_directories(place);
  write_file_atomically(place / "tensors.tsv", tensor_tsv(points, static_cast<std::size_t>(dimensions)));
  if (!labels.rows.empty()) write_file_atomically(place / "metadata.tsv", labels_tsv(labels));
  if (!sprite.bytes.empty()) write_file_atomically(place / "sprite.png", sprite.bytes);

  const std::filesystem::path config = log_dir() / "projector_config.pbtxt";
  const std::string text = read_config(config), name = tensor_name(tag, step);
  const std::string entry =
      config_entry(folder, name, !labels.rows.empty(), !sprite.bytes.empty(), pictures.size);
  if (text.find(entry) == std::string::npos) write_file_atomically(config, without_entry(text, name) + entry);
}

}  // namespace sweep::tbwriter
