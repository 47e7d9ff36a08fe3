#include "runmanager/kinds/command/event_names.h"

#include <algorithm>
#include <cctype>
#include <string_view>

#include "core/base/text.h"
#include "runmanager/config/metrics.h"

namespace sweep {
namespace {

// A time with a fraction, as add_hparams() calls its directories.
bool is_time(const std::string& name) {
  const auto is_digit = [](unsigned char c) { return std::isdigit(c) != 0; };
  return std::ranges::count(name, '.') == 1 && name.find('.') >= 9 &&
         std::ranges::all_of(name, [&](char c) { return c == '.' || is_digit(c); });
}

bool is_data_part(EventsPart part) {
  return part == EventsPart::kTraining || part == EventsPart::kValidation || part == EventsPart::kTest;
}

// That of the keys of the part's metrics.
std::string prefix_of(EventsPart part) {
  if (part == EventsPart::kTest) return "test_";
  return part == EventsPart::kValidation ? "validation_" : "";
}

// Whether a directory was called by the name that a tag had before "_" took the place of blanks and others.
bool is_named_as(std::string_view name, std::string_view tag) {
  return std::ranges::equal(name, tag, [](char in_name, char in_tag) {
    const auto byte = static_cast<unsigned char>(in_name);
    const bool is_illegal = byte < 0x80 && std::isalnum(byte) == 0 &&
                            std::string_view("-./").find(in_name) == std::string_view::npos;
    return in_name == in_tag || (in_tag == '_' && is_illegal);
  });
}

}  // namespace

EventsPart part_of(const std::filesystem::path& directory) {
  const std::string name = directory.filename().string();
  if (name == "train") return EventsPart::kTraining;
  if (name == "validation" || name == "val") return EventsPart::kValidation;
  if (name == "test") return EventsPart::kTest;
  return is_time(name) ? EventsPart::kSession : EventsPart::kRun;
}

std::string metric_of(const std::string& tag, EventsPart part) {
  if (is_data_part(part) && (tag.starts_with("batch_") || tag.ends_with("_vs_iterations"))) return "";
  if (metric_tagged(tag) != nullptr) return tag;
  std::string name = lower_case(tag);
  for (char& c : name)
    if (c == ' ' || c == '/') c = '_';
  const auto take = [&name](std::string_view prefix) {
    if (!name.starts_with(prefix)) return false;
    name.erase(0, prefix.size());
    return true;
  };
  take("epoch_");
  std::string prefix = prefix_of(part);
  if (take("val_") || take("valid_") || take("validation_"))
    prefix = prefix_of(EventsPart::kValidation);
  else if (take("test_"))
    prefix = prefix_of(EventsPart::kTest);
  else if (!take("train_"))
    take("training_");
  if (name == "acc") name = "accuracy";
  std::string key = prefix + name;
  return find_metric(key) != nullptr ? key : prefix_of(part) + tag;
}

std::optional<std::string> above_tag(const std::string& directory, const std::string& tag) {
  const std::size_t above = directory.size() - std::min(directory.size(), tag.size() + 1);
  if (!is_named_as(std::string_view(directory).substr(above), "/" + tag)) return std::nullopt;
  return directory.substr(0, above);
}

std::string metric_in(const std::filesystem::path& subdirectory, const std::string& tag) {
  const EventsPart part = part_of(subdirectory);
  if (is_data_part(part)) return metric_of(tag, part);
  std::string folder = tag;
  std::ranges::replace(folder, '/', '_');
  const std::string name = subdirectory.filename().string();
  if (above_tag(subdirectory.parent_path().string(), tag)) return tag + "_" + name;
  const bool is_series = is_named_as(std::string_view(name).substr(0, folder.size() + 1), folder + "_");
  return is_series ? tag + name.substr(folder.size()) : tag;
}

}  // namespace sweep
