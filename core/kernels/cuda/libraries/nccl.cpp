// nccl.h on NCCL. What the comments say of NCCL is in its user guide, "Creating a Communicator", "Collective
// Operations", "In-place Operations", "Group Calls", "Fault Tolerance" and "Thread Safety".
#include "core/kernels/cuda/libraries/nccl.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <thread>
#include <utility>
#include <vector>

#include "core/kernels/cuda/libraries/nccl_library.h"
#include "core/kernels/cuda/runtime/cuda_devices.h"

namespace sweep {

std::optional<std::string> nccl_missing_reason() {
  const cuda::LibraryFile& file = cuda::nccl().file;
  if (file) return std::nullopt;
  return "several GPUs train one network through NCCL, which cannot be used: " + file.problem();
}

namespace cuda {

// ncclConfig_t and non-blocking communicators as they are used here came with 2.18, ncclConfig_t grows
// compatibly within version 2: it begins with its size and version.
constexpr int kOldestVersion = NCCL_VERSION(2, 18, 1);

Nccl::Nccl() : file({"libnccl.so." + std::to_string(NCCL_MAJOR)}) {
  if (!file) return;
  int found = 0;
  get_version(&found);
  // Before 2.9, versions were 1000 · major + 100 · minor + patch.
  const int major = found < 10000 ? found / 1000 : found / 10000;
  version =
      std::to_string(major) + "." + std::to_string(found / 100 % 100) + "." + std::to_string(found % 100);
  if (found < kOldestVersion) file.refuse("is NCCL " + version + ", want 2.18.1 or newer");
}

const Nccl& nccl() {
  static const Nccl library;
  return library;
}

static_assert(sizeof(DeviceGroupId) == NCCL_UNIQUE_ID_BYTES);

namespace {

// The pause between two looks at unfinished work: short compared with a training step, longer after a while.
class Pause {
 public:
  void take() {
    if (++looks_ < 1000) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(std::chrono::microseconds(looks_ < 10000 ? 20 : 500));
    }
  }

 private:
  int looks_ = 0;
};

constexpr const char* kExchanging = "exchanging gradients";

class NcclGroup final : public DeviceGroup {
 public:
  NcclGroup(const DeviceGroupId& id, int rank, int size, double deadline, std::function<void()> check)
      : rank_(rank), size_(size), deadline_(deadline), check_others_(std::move(check)) {
    ncclUniqueId made;
    std::memcpy(made.internal, id.data(), id.size());
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    // No call waits for others: with a deadline, this thread waits.
    config.blocking = 0;
    constexpr const char* kDoing = "waiting for all of them to begin";
    this->check(nccl().init_rank(&group_, size, made, rank, &config), kDoing);
    finish(kDoing);
  }

  ~NcclGroup() override {
    if (group_ == nullptr) return;
    if (has_work_) {
      abort();
    } else {
      end();
    }
  }

  void all_gather(Stream& stream, std::byte* data, std::span<const std::size_t> begins) override {
    require_usable();
    const std::size_t bytes = begins[1] - begins[0];
    bool equal = begins[0] == 0;
    for (std::size_t rank = 0; rank + 1 < begins.size(); ++rank)
      equal = equal && begins[rank + 1] - begins[rank] == bytes;
    if (!equal) return broadcast(stream.native(), data, begins);
    has_work_ = true;
    // In place if sendbuff is recvbuff + rank · sendcount.
    check(nccl().all_gather(data + begins[static_cast<std::size_t>(rank_)], data, bytes, ncclUint8, group_,
                            stream.native()),
          kExchanging);
    finish(kExchanging);
  }

  void wait(Stream& stream) override {
    require_usable();
    wait_until([&] { return is_done(cudaStreamQuery(stream.native())); }, kExchanging);
    has_work_ = false;
  }

  void wait(const Event& event) override {
    require_usable();
    wait_until([&] { return is_done(cudaEventQuery(event.native())); }, kExchanging);
  }

  void abort() noexcept override {
    // Frees the communicator too, and lets its kernels end.
    if (group_ != nullptr) nccl().abort(std::exchange(group_, nullptr));
  }

 private:
  [[noreturn]] void fail(const std::string& problem) {
    abort();
    throw CommunicatorError("GPU " + std::to_string(rank_) + " of " + std::to_string(size_) +
                            " that train together: " + problem);
  }

  // `result`: of a call or of the communicator. ncclInProgress is no error: of a non-blocking communicator it
  // says that the call goes on in the background.
  void check(ncclResult_t result, const char* doing) {
    if (result == ncclSuccess || result == ncclInProgress) return;
    // ncclGetLastError() explains the last error of the process, which may be of an earlier call.
    std::string problem = std::string("error of NCCL while ") + doing + ": " + nccl().error_string(result);
    const char* last = nccl().last_error(group_);
    if (last != nullptr && *last != '\0') problem += std::string(" (") + last + ")";
    fail(problem);
  }

  [[noreturn]] void fail_late(const char* doing) {
    fail(std::string("the others are not there after ") + std::to_string(std::lround(deadline_)) + " s of " +
         doing);
  }

  // What the communicator reports: of its last call, and of errors that it met since.
  ncclResult_t state(const char* doing) {
    ncclResult_t result = ncclSuccess;
    check(nccl().async_error(group_, &result), doing);
    check(result, doing);
    return result;
  }

  void require_usable() {
    if (group_ == nullptr) fail("was aborted");
  }

  // Everybody's block to all, as one call.
  void broadcast(cudaStream_t stream, std::byte* data, std::span<const std::size_t> begins) {
    has_work_ = true;
    // Calls between group_start() and group_end() go as one.
    check(nccl().group_start(), kExchanging);
    ncclResult_t problem = ncclSuccess;
    for (std::size_t root = 0; root + 1 < begins.size(); ++root) {
      const std::size_t bytes = begins[root + 1] - begins[root];
      if (bytes == 0) continue;
      // In place if sendbuff is recvbuff.
      std::byte* block = data + begins[root];
      const ncclResult_t result =
          nccl().broadcast(block, block, bytes, ncclUint8, static_cast<int>(root), group_, stream);
      if (result != ncclSuccess && result != ncclInProgress) problem = result;
    }
    // Also after an error, or the thread's group would stay open.
    const ncclResult_t end = nccl().group_end();
    check(problem, kExchanging);
    check(end, kExchanging);
    finish(kExchanging);
  }

  // `answer`: to whether work on the device is done.
  bool is_done(cudaError_t answer) {
    if (answer == cudaSuccess) return true;
    if (answer != cudaErrorNotReady) {
      cudaGetLastError();  // clears the error, or the next call would report it again
      fail(std::string("error while waiting for the device: ") + cudaGetErrorString(answer));
    }
    state(kExchanging);
    return false;
  }

  // "The communicator's state must be ncclSuccess before the next call": an exchange is on the stream only
  // then.
  void finish(const char* doing) {
    wait_until([&] { return state(doing) != ncclInProgress; }, doing);
  }

  template <class IsDone>
  void wait_until(IsDone is_done, const char* doing) {
    Deadline over(deadline_);
    Pause pause;
    while (!is_done()) {
      if (over.is_over()) fail_late(doing);
      ask_others();
      pause.take();
    }
  }

  void ask_others() {
    try {
      if (check_others_) check_others_();
    } catch (...) {
      abort();
      throw;
    }
  }

  // ncclCommDestroy() finalizes a communicator that is not, waits for all ranks of the machine then, and has
  // no deadline. After ncclCommFinalize() and ncclSuccess it waits for nobody. A rank that has failed does
  // not come, and is not waited for long, as nothing is lost by an abort.
  void end() noexcept {
    constexpr double kPatience = 5;  // s
    ncclResult_t result = nccl().finalize(group_);
    Deadline over(std::min(deadline_, kPatience));
    Pause pause;
    while (result == ncclSuccess || result == ncclInProgress) {
      ncclResult_t state = ncclSuccess;
      result = nccl().async_error(group_, &state);
      if (result != ncclSuccess) break;
      if (state == ncclSuccess) {
        nccl().destroy(std::exchange(group_, nullptr));
        return;
      }
      if (state != ncclInProgress || over.is_over()) break;
      pause.take();
    }
    abort();
  }

  ncclComm_t group_ = nullptr;
  const int rank_, size_;
  const double deadline_;
  const std::function<void()> check_others_;
  bool has_work_ = false;  // whether exchanges may not be done
};

}  // namespace

DeviceGroupId make_group_id() {
  if (const auto reason = nccl_missing_reason()) throw DeviceError(*reason);
  ncclUniqueId made;
  // Needs no device.
  const ncclResult_t result = nccl().unique_id(&made);
  if (result != ncclSuccess)
    throw CommunicatorError(std::string("NCCL makes no group: ") + nccl().error_string(result) + " (" +
                            nccl().last_error(nullptr) + ")");
  DeviceGroupId id;
  std::memcpy(id.data(), made.internal, id.size());
  return id;
}

std::unique_ptr<DeviceGroup> make_device_group(const DeviceGroupId& id, int rank, int size, double deadline,
                                               std::function<void()> check) {
  if (const auto reason = nccl_missing_reason()) throw DeviceError(*reason);
  return std::make_unique<NcclGroup>(id, rank, size, deadline, std::move(check));
}

}  // namespace cuda
}  // namespace sweep
