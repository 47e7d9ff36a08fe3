#include "runmanager/kinds/command/output_log.h"

#include <fmt/format.h>
#include <unistd.h>

#include <string>

#include "core/base/error.h"

namespace sweep {

OutputLog::OutputLog(const std::filesystem::path& path, std::uint64_t kept)
    : path_(path), file_(open_output_file(path, OutputMode::kUpdate)), kept_(kept) {
  const off_t size = end();
  if (size > 0 && ::pread(file_.get(), &last_, 1, size - 1) != 1) last_ = '\n';
}

// The lines of LogFile are in the same file.
off_t OutputLog::end() const { return ::lseek(file_.get(), 0, SEEK_END); }

void OutputLog::append(std::string_view text) const try {
  end();
  write_all(file_.get(), text, path_);
} catch (const IoError&) {
  // It is lost.
}

void OutputLog::write(std::string_view text) {
  if (text.empty()) return;
  append(text);
  last_ = text.back();
  // Three times, so that the end is moved only once per kept_ bytes.
  const auto size = static_cast<std::uint64_t>(end());
  if (size > 3 * kept_) leave_out_middle(size);
}

void OutputLog::end_line() {
  if (last_ != '\n') write("\n");
}

void OutputLog::leave_out_middle(std::uint64_t size) {
  std::string last(kept_, '\0');
  const ssize_t read = ::pread(file_.get(), last.data(), last.size(), static_cast<off_t>(size - kept_));
  if (read != static_cast<ssize_t>(last.size())) return;
  left_out_ += size - 2 * kept_;
  if (::ftruncate(file_.get(), static_cast<off_t>(kept_)) != 0) return;
  append(fmt::format("\n[... about {} bytes are left out here ...]\n", left_out_) + last);
}

}  // namespace sweep
