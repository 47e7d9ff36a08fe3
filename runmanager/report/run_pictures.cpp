#include "runmanager/report/run_pictures.h"

#include <array>
#include <string_view>

#include "core/base/error.h"
#include "tbwriter/event_files.h"
#include "tbwriter/event_reader.h"

namespace sweep {
namespace {

namespace fs = std::filesystem;

// The tags of RunLog and log_predictions().
struct Tags {
  std::string_view image, text, title;
};
constexpr std::array<Tags, 3> kTags = {
    {{"images", "", "First batch"},
     {"predictions/confusion_matrix", "predictions/confusion_counts", "Confusion matrix"},
     {"predictions/misclassified", "predictions/misclassified_list", "Misclassified samples"}}};

constexpr std::string_view kPngSignature = "\x89PNG\r\n\x1a\n";

using Found = std::array<RunPicture, kTags.size()>;

void take(const tbwriter::DecodedEvent& event, Found& found) {
  for (const tbwriter::DecodedValue& value : event.values) {
    for (std::size_t i = 0; i < kTags.size(); ++i) {
      if (value.tag == kTags[i].text && value.text) found[i].text = *value.text;
      if (value.tag != kTags[i].image || !value.image || !value.image->bytes.starts_with(kPngSignature))
        continue;
      found[i] = {std::string(kTags[i].title), value.image->width, value.image->height,
                  std::string(value.image->bytes), std::move(found[i].text)};
    }
  }
}

void read_file(const fs::path& path, Found& found) {
  tbwriter::EventReader reader(path);
  while (true) {
    if (const auto payload = reader.next()) {
      try {
        take(tbwriter::decode_event(*payload), found);
      } catch (const DataError&) {
        // No event: `fsck` tells of it.
      }
    } else if (!reader.skip_record()) {
      return;
    }
  }
}

}  // namespace

std::vector<RunPicture> run_pictures(const fs::path& run_directory) {
  Found found;
  try {
    for (const std::string& file : tbwriter::list_event_files(run_directory))
      read_file(run_directory / file, found);
  } catch (const Error&) {
    // What was read until then is shown.
  }
  std::vector<RunPicture> pictures;
  for (RunPicture& picture : found) {
    if (!picture.png.empty()) pictures.push_back(std::move(picture));
  }
  return pictures;
}

}  // namespace sweep
