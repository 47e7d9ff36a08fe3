#include "core/data/dataset_remarks.h"

#include <algorithm>

#include "core/base/printable.h"
#include "core/data/readers/input_file.h"

namespace sweep {

std::vector<std::string> dataset_remarks(const Dataset& dataset) {
  constexpr std::size_t kMaxShown = 3;
  std::vector<std::string> remarks;
  if (!dataset.skipped.empty()) {
    const std::size_t count = dataset.skipped.size();
    std::string line = "data set " + quoted_name(dataset.name) + ": " + std::to_string(count) +
                       (count == 1 ? " file was skipped: " : " files were skipped: ");
    for (std::size_t i = 0; i < std::min(count, kMaxShown); ++i) {
      const SkippedFile& file = dataset.skipped[i];
      line += (i > 0 ? "; " : "") + printable_line(file.path.string() + " (" + file.reason + ")");
    }
    if (count > kMaxShown) line += "; … run.json lists all of them";
    remarks.push_back(std::move(line));
  }
  remarks.insert(remarks.end(), dataset.notes.begin(), dataset.notes.end());
  return remarks;
}

}  // namespace sweep
