#include "core/kernels/cuda/libraries/choice_cache.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/file.h"
#include "core/json/json_text.h"

namespace sweep::cuda {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

// Raised when the built-in kernels have become so much faster that everything should be measured again.
constexpr int kVersion = 1;

// An exclusive lock between processes, and between threads, as every Lock opens the file itself.
class Lock {
 public:
  explicit Lock(const fs::path& path) : file_(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666)) {
    if (file_ < 0) return;
    int result = 0;
    do {
      result = ::flock(file_, LOCK_EX);
    } while (result != 0 && errno == EINTR);
    locked_ = result == 0;
  }
  ~Lock() {
    if (file_ >= 0) ::close(file_);
  }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;
  explicit operator bool() const { return locked_; }

 private:
  int file_;
  bool locked_ = false;
};

// {"version": 1, "choices": {SETTING: {TASK: {"kernel": "library", "own_seconds": …, …}}}}
Json empty_file() { return {{"version", kVersion}, {"choices", Json::object()}}; }

Json read(const fs::path& file) {
  std::error_code error;
  if (!fs::exists(file, error)) return empty_file();
  try {
    Json json = read_json_file(file);
    if (json.is_object() && json.value("version", Json()) == kVersion && json.contains("choices") &&
        json["choices"].is_object())
      return json;
  } catch (const DataError&) {
    // unreadable: as damaged
  }
  return empty_file();
}

std::optional<Choice> find(const Json& json, const std::string& setting, const std::string& task) {
  const Json& choices = json["choices"];
  const auto tasks = choices.find(setting);
  if (tasks == choices.end() || !tasks->is_object()) return std::nullopt;
  const auto choice = tasks->find(task);
  if (choice == tasks->end() || !choice->is_object()) return std::nullopt;
  const Json kernel = choice->value("kernel", Json()), own = choice->value("own_seconds", Json()),
             library = choice->value("library_seconds", Json());
  if ((kernel != "own" && kernel != "library") || !own.is_number() || !library.is_number())
    return std::nullopt;
  return Choice{kernel == "library", own.get<double>(), library.get<double>()};
}

bool write(const fs::path& file, const Json& json) {
  try {
    write_file_atomically(file, json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
    return true;
  } catch (const IoError&) {
    return false;
  }
}

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

}  // namespace

std::optional<Choice> ChoiceCache::find_or_measure(
    const std::string& setting, const std::string& task,
    const std::function<std::optional<Choice>()>& measure) const {
  if (file_.empty()) return std::nullopt;
  // Read without the lock: the file is always replaced as a whole.
  if (const auto choice = find(read(file_), setting, task)) return choice;
  std::error_code error;
  fs::create_directories(file_.parent_path(), error);
  const Lock lock(file_.string() + ".lock");
  if (!lock) return std::nullopt;
  Json json = read(file_);
  if (const auto choice = find(json, setting, task)) return choice;
  // Tested before measuring: a choice that cannot be kept would be useless.
  if (!fs::exists(file_, error) && !write(file_, json)) return std::nullopt;
  const std::optional<Choice> choice = measure();
  if (!choice) return std::nullopt;
  Json& tasks = json["choices"][setting];
  if (!tasks.is_object()) tasks = Json::object();
  tasks[task] = {{"kernel", choice->library ? "library" : "own"},
                 {"own_seconds", choice->builtin_seconds},
                 {"library_seconds", choice->library_seconds}};
  return write(file_, json) ? choice : std::nullopt;
}

fs::path default_choice_file() {
  constexpr const char* kFile = "sweep/cuda-choices.json";
  // As the XDG base directory specification has it: a path that is not absolute counts as none.
  if (const fs::path cache = environment("XDG_CACHE_HOME"); cache.is_absolute()) return cache / kFile;
  if (const fs::path home = environment("HOME"); home.is_absolute()) return home / ".cache" / kFile;
  return {};
}

}  // namespace sweep::cuda
