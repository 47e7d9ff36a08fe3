#include "runmanager/tensorboard/recorded_epochs.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/error.h"
#include "tbwriter/event_files.h"
#include "tbwriter/event_reader.h"

namespace sweep {
namespace {

// A tag that every epoch has a point of.
constexpr std::string_view kEpochTag = "Loss/train";

}  // namespace

std::set<std::int64_t> recorded_epochs(const std::filesystem::path& directory) {
  std::set<std::int64_t> steps;
  for (const std::string& name : tbwriter::list_event_files(directory)) {
    tbwriter::EventReader reader(directory / name);
    while (const auto payload = reader.next()) {
      const tbwriter::DecodedEvent event = tbwriter::decode_event(*payload);
      // All points of an epoch are in one record, so one of them is enough.
      const bool has_epoch =
          std::any_of(event.values.begin(), event.values.end(),
                      [](const tbwriter::DecodedValue& value) { return value.tag == kEpochTag; });
      if (has_epoch) steps.insert(event.step);
    }
  }
  return steps;
}

void remove_events(const std::filesystem::path& directory) {
  std::vector<std::string> files = tbwriter::list_event_files(directory);
  // The latest first: what is left after an interruption is still the beginning of the run.
  for (auto name = files.rbegin(); name != files.rend(); ++name) {
    std::error_code error;
    std::filesystem::remove(directory / *name, error);
    if (error) throw IoError((directory / *name).string() + ": cannot remove: " + error.message());
  }
}

}  // namespace sweep
