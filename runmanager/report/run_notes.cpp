#include "runmanager/report/run_notes.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/text.h"

namespace sweep {

std::vector<std::string> run_notes(const ReportData& data) {
  struct Note {
    RunStatus status;
    std::string reason;
    std::size_t runs;
  };
  std::vector<Note> notes;
  for (const RunRecord& run : data.records) {
    if (run.status == RunStatus::kCompleted) continue;
    const std::string error = run.error.value_or(""), reason = error.substr(0, error.find('\n'));
    const auto found = std::find_if(notes.begin(), notes.end(), [&](const Note& note) {
      return note.status == run.status && note.reason == reason;
    });
    if (found == notes.end()) {
      notes.push_back({run.status, reason, 1});
    } else {
      ++found->runs;
    }
  }
  // Failures come first: a search prunes for many reasons.
  std::ranges::stable_sort(notes, {}, &Note::status);
  std::vector<std::string> lines;
  for (const Note& note : notes)
    lines.push_back(fmt::format("{} {}{}", counted(note.runs, "run"), to_string(note.status),
                                note.reason.empty() ? "" : ": " + note.reason));
  return lines;
}

}  // namespace sweep
