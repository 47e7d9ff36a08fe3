#include "runmanager/kinds/command/output_log.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <string>

namespace sweep {
namespace {

// Returns how much was written.
std::size_t write_at(int fd, std::string_view text, std::uint64_t offset) {
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t written =
        ::pwrite(fd, text.data() + done, text.size() - done, static_cast<off_t>(offset + done));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) break;
    done += static_cast<std::size_t>(written);
  }
  return done;
}

}  // namespace

OutputLog::OutputLog(const std::filesystem::path& path, std::uint64_t kept)
    : file_(open_output_file(path, OutputMode::kUpdate)), kept_(kept) {
  const off_t end = ::lseek(file_.get(), 0, SEEK_END);
  size_ = end > 0 ? static_cast<std::uint64_t>(end) : 0;
  if (size_ > 0 && ::pread(file_.get(), &last_, 1, end - 1) != 1) last_ = '\n';
}

void OutputLog::write(std::string_view text) {
  if (text.empty()) return;
  // The lines of LogFile are in the same file.
  if (const off_t end = ::lseek(file_.get(), 0, SEEK_END); end >= 0) size_ = static_cast<std::uint64_t>(end);
  size_ += write_at(file_.get(), text, size_);
  last_ = text.back();
  // Three times, so that the end is moved only once per kept_ bytes.
  if (size_ > 3 * kept_) leave_out_middle();
}

void OutputLog::end_line() {
  if (last_ != '\n') write("\n");
}

void OutputLog::leave_out_middle() {
  std::string end(kept_, '\0');
  const ssize_t read = ::pread(file_.get(), end.data(), end.size(), static_cast<off_t>(size_ - kept_));
  if (read != static_cast<ssize_t>(end.size())) return;
  left_out_ += size_ - 2 * kept_;
  const std::string text = fmt::format("\n[... about {} bytes are left out here ...]\n", left_out_) + end;
  if (::ftruncate(file_.get(), static_cast<off_t>(kept_)) != 0) return;
  size_ = kept_ + write_at(file_.get(), text, kept_);
}

}  // namespace sweep
