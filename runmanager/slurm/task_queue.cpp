#include "runmanager/slurm/task_queue.h"

#include <fmt/format.h>
#include <sys/file.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/base/error.h"
#include "core/json/json_text.h"
#include "runmanager/text/json_output.h"

namespace sweep {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

// The wall clock, which machines that share a directory have in common.
double now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

fs::path queue_path(const fs::path& directory) { return directory / kSlurmFolder / kSlurmQueueFile; }

struct Cached {
  TaskQueue queue;
  double asked = 0;  // seconds since 1970
};

// Nothing if there is no file, or none that can be understood: then Slurm is asked.
std::optional<Cached> read_cached(const fs::path& directory) {
  std::error_code error;
  if (!fs::exists(queue_path(directory), error)) return std::nullopt;
  try {
    const Json file = read_json_file(queue_path(directory));
    Cached cached;
    cached.asked = file.at("asked").get<double>();
    cached.queue.error = file.at("error").get<std::string>();
    cached.queue.known = cached.queue.error.empty();
    cached.queue.age = now() - cached.asked;
    for (const Json& task : file.at("tasks")) {
      cached.queue.tasks.push_back({task.at(0).get<std::string>(), task.at(1).get<std::string>(),
                                    task.at(2).get<std::string>(), task.at(3).get<std::string>()});
    }
    return cached;
  } catch (const DataError&) {
    return std::nullopt;
  } catch (const Json::exception&) {
    return std::nullopt;
  }
}

// Best effort: who cannot write there, because the sweep is somebody else's, still gets the answer.
void try_write(const fs::path& directory, const TaskQueue& queue, double asked) {
  Json tasks = Json::array();
  for (const SlurmTask& task : queue.tasks) tasks.push_back({task.job, task.index, task.state, task.reason});
  try {
    write_file_atomically(
        queue_path(directory),
        compact_json_text({{"asked", asked}, {"error", queue.error}, {"tasks", std::move(tasks)}}) + "\n",
        Survives::kKill);
  } catch (const IoError&) {  // NOLINT(bugprone-empty-catch): as said above
  }
}

// Whether this process is the one that asks; the lock ends with the descriptor.
class AskingLock {
 public:
  explicit AskingLock(const fs::path& directory) {
    try {
      file_.emplace(open_output_file(directory / kSlurmFolder / ".asking", OutputMode::kAppend));
      held_ = ::flock(file_->get(), LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK;
    } catch (const IoError&) {
      held_ = true;  // Nobody can lock there.
    }
  }
  bool held() const { return held_; }

 private:
  std::optional<FileDescriptor> file_;
  bool held_ = false;
};

bool is_young(const Cached& cached) { return cached.queue.age >= 0 && cached.queue.age < kQueueSeconds; }

}  // namespace

TaskQueue fresh_queue(const fs::path& directory, const std::vector<SubmittedJob>& jobs, SlurmClient& client) {
  TaskQueue queue;
  const double asked = now();
  const std::vector<SlurmJobId> ids = known_ids(jobs);
  if (!ids.empty()) queue.tasks = client.tasks(ids);
  queue.known = true;
  try_write(directory, queue, asked);
  return queue;
}

TaskQueue shared_queue(const fs::path& directory, const std::vector<SubmittedJob>& jobs,
                       SlurmClient& client) {
  std::optional<Cached> cached = read_cached(directory);
  if (cached && is_young(*cached)) return cached->queue;
  const AskingLock lock(directory);
  if (!lock.held() && cached) return cached->queue;
  cached = read_cached(directory);  // Another one may have asked meanwhile.
  if (cached && is_young(*cached)) return cached->queue;
  try {
    return fresh_queue(directory, jobs, client);
  } catch (const Error& error) {
    // A cluster that cannot be reached is not asked more often, either.
    TaskQueue unknown;
    unknown.error = error.what();
    if (cached) unknown.tasks = cached->queue.tasks;
    try_write(directory, unknown, now());
    return unknown;
  }
}

void add_to_queue(const fs::path& directory, const SubmittedJob& job) {
  std::optional<Cached> cached = read_cached(directory);
  if (!cached) return;
  for (std::size_t i = 0; i < job.tasks; ++i)
    cached->queue.tasks.push_back({job.id.job, job.is_report() ? "" : std::to_string(i), "PENDING", "None"});
  try_write(directory, cached->queue, cached->asked);
}

}  // namespace sweep
