// The module sweep_mpi.so: a group of ranks that are processes, by MPI.
#include <mpi.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "core/base/error.h"
#include "core/base/threads.h"
#include "core/parallel/communicator.h"
#include "core/parallel/mpi_session.h"

namespace sweep {
namespace {

using namespace std::chrono_literals;

// Says that `rank` is lost, and why, and ends all processes. May be called by any thread.
[[noreturn]] void end_all_ranks(MPI_Comm comm, int rank, const std::string& reason) noexcept {
  std::cerr << "sweep: rank " + std::to_string(rank) + ": " + reason +
                   "; all ranks end, and the same command resumes the sweep\n"
            << std::flush;
  MPI_Abort(comm, 1);
  std::_Exit(1);
}

// Signs of life of rank 0.
//
// Between two commands rank 0 may take any time to load data or to train other runs alone, or it may wait
// for one rank while others wait for it. One of its threads tells the others that it lives: if they hear
// nothing, it was killed, or its machine is lost. A sign is sent to a rank only after it has taken the
// previous one, so none pile up if a process is stopped.
class MpiPulse {
 public:
  // On all ranks together. `deadline`: of the group, in seconds; there are ten signs in it. Every caller of
  // MPI on this rank holds `mpi`. Throws Error if there is no thread left.
  MpiPulse(MPI_Comm world, double deadline, std::mutex& mpi) : deadline_(deadline), mpi_(mpi) {
    MPI_Comm_dup(world, &comm_);
    int size = 1;
    MPI_Comm_rank(comm_, &rank_);
    MPI_Comm_size(comm_, &size);
    requests_.assign(static_cast<std::size_t>(rank_ == 0 ? size - 1 : 1), MPI_REQUEST_NULL);
    if (rank_ > 0) {
      listen();
    } else {
      const BlockSignals blocked;
      thread_ = start_thread("tells the other ranks that this one is there", [this] { beat(); });
    }
  }
  // On all ranks together, which have come to the end when it returns. A rank that is late ends them all.
  ~MpiPulse() {
    if (rank_ == 0) {
      {
        const std::lock_guard lock(mutex_);
        ends_ = true;
      }
      ended_.notify_all();
      thread_.join();
      for (const Sign sign : {kEnd, kAllAtEnd}) {
        wait(deadline_);
        sign_ = sign;
        for (std::size_t i = 0; i < requests_.size(); ++i) give(i);
      }
      wait(deadline_);
    } else {
      // Rank 0 may have to wait for another.
      for (wait(2 * deadline_); sign_ != kAllAtEnd; wait(2 * deadline_)) listen();
    }
    MPI_Comm_free(&comm_);
  }
  MpiPulse(const MpiPulse&) = delete;
  MpiPulse& operator=(const MpiPulse&) = delete;

  // Whether rank 0 has given a sign since the last call; false on rank 0. With `mpi` held, and while rank 0
  // has a command to give.
  bool was_felt() {
    if (rank_ == 0) return false;
    int done = 0;
    MPI_Test(requests_.data(), &done, MPI_STATUS_IGNORE);
    if (done != 0) listen();
    return done != 0;
  }

 private:
  enum Sign : char { kThere, kEnd, kAllAtEnd };

  void beat() {
    const std::chrono::duration<double> interval(deadline_ / 10);
    std::unique_lock lock(mutex_);
    while (!ended_.wait_for(lock, interval, [this] { return ends_; })) {
      const std::lock_guard calls(mpi_);
      for (std::size_t i = 0; i < requests_.size(); ++i) {
        int done = 0;
        MPI_Test(&requests_[i], &done, MPI_STATUS_IGNORE);
        if (done != 0) give(i);
      }
    }
  }

  // MPI_Issend is done when the sign is taken.
  void give(std::size_t i) {
    MPI_Issend(&sign_, 1, MPI_CHAR, static_cast<int>(i) + 1, 0, comm_, &requests_[i]);
  }

  void listen() { MPI_Irecv(&sign_, 1, MPI_CHAR, 0, 0, comm_, requests_.data()); }

  // At the end, when this thread alone calls MPI.
  void wait(double seconds) {
    Deadline deadline(seconds);
    for (std::size_t i = 0; i < requests_.size(); ++i) {
      for (int done = 0; MPI_Test(&requests_[i], &done, MPI_STATUS_IGNORE), done == 0;) {
        if (deadline.is_over())
          end_all_ranks(comm_, rank_ == 0 ? static_cast<int>(i) + 1 : 0, silence(seconds));
        std::this_thread::sleep_for(std::chrono::microseconds(100));
      }
    }
  }

  const double deadline_;
  std::mutex& mpi_;
  MPI_Comm comm_{};
  int rank_ = 0;
  Sign sign_ = kThere;
  std::vector<MPI_Request> requests_;  // rank 0: a sign to each of the others; else: the next sign
  std::mutex mutex_;
  std::condition_variable ended_;
  bool ends_ = false;  // guarded by mutex_
  std::thread thread_;
};

// The ranks of this machine.
MPI_Comm ranks_of_this_machine(MPI_Comm comm) {
  MPI_Comm machine{};
  MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &machine);
  return machine;
}

// Messages go from rank to rank, all at once, instead of through MPI's collective calls: so it is known who
// is late. What a rank receives is the same amount as with a ring.
class MpiCommunicator final : public Communicator {
 public:
  MpiCommunicator(MPI_Comm comm, double deadline)
      : comm_(comm), deadline_(deadline), pulse_(comm, deadline, mpi_) {
    const std::lock_guard lock(mpi_);
    MPI_Comm_rank(comm_, &rank_);
    MPI_Comm_size(comm_, &size_);
    MPI_Comm machine = ranks_of_this_machine(comm_);
    MPI_Comm_rank(machine, &local_rank_);
    MPI_Comm_free(&machine);
    MPI_Type_contiguous(kLine, MPI_BYTE, &line_);
    MPI_Type_commit(&line_);
  }
  ~MpiCommunicator() override {
    const std::lock_guard lock(mpi_);
    MPI_Type_free(&line_);
  }
  MpiCommunicator(const MpiCommunicator&) = delete;
  MpiCommunicator& operator=(const MpiCommunicator&) = delete;

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  int local_rank() const override { return local_rank_; }
  double deadline() const override { return deadline_; }
  bool shares_memory() const override { return false; }

  void all_gather(std::span<const SharedArray> arrays) override {
    for (int step = 1; step < size_; ++step) {
      const int from = (rank_ + size_ - step) % size_, to = (rank_ + step) % size_;
      for (const SharedArray& array : arrays) {
        receive(part_of(array, from), from);
        send(part_of(array, rank_), to);
      }
    }
    wait();
  }

  void scatter(const SharedArray& array) override {
    if (rank_ == 0) {
      for (int to = 1; to < size_; ++to) send(part_of(array, to), to);
    } else {
      receive(part_of(array, rank_), 0);
    }
    wait();
  }

  // In pieces, each within the deadline: rank 0 sends all parameters to all through one network card.
  void broadcast(std::span<std::byte> data) override {
    for (std::size_t begin = 0; begin < data.size(); begin += kPieceBytes) {
      const auto piece = data.subspan(begin, std::min(kPieceBytes, data.size() - begin));
      if (rank_ == 0) {
        for (int to = 1; to < size_; ++to) send(piece, to);
      } else {
        receive(piece, 0);
      }
      wait();
    }
  }

  void barrier() override {
    std::byte out{};
    std::vector<std::byte> in(static_cast<std::size_t>(size_));
    for (int peer = 0; peer < size_; ++peer) {
      if (peer == rank_) continue;
      receive({&in[static_cast<std::size_t>(peer)], 1}, peer);
      send({&out, 1}, peer);
    }
    wait();
  }

  void abort(const std::string& reason) noexcept override { end_all_ranks(comm_, rank_, reason); }
  void abort_for_lost_rank(const std::string& reason) noexcept override { call_roll(reason); }

 private:
  enum Tag : int { kData, kRollCall };
  static constexpr std::size_t kPieceBytes = std::size_t{64} << 20;
  static constexpr int kLine = 64;  // bytes that count as one if a message is large: MPI counts with int

  static std::span<std::byte> part_of(const SharedArray& array, int rank) {
    const auto r = static_cast<std::size_t>(rank);
    return {array.data + array.begins[r], array.begins[r + 1] - array.begins[r]};
  }

  void send(std::span<std::byte> data, int to, Tag tag = kData) { transfer(data, to, true, tag); }
  void receive(std::span<std::byte> data, int from, Tag tag = kData) { transfer(data, from, false, tag); }

  // In lines and what is left, so that messages of up to 128 GiB have a count.
  void transfer(std::span<std::byte> data, int peer, bool sends, Tag tag) {
    const std::size_t lines = data.size() / kLine, rest = data.size() % kLine;
    if (lines > 0) post(data.data(), static_cast<int>(lines), line_, peer, sends, tag);
    if (rest > 0) post(data.data() + lines * kLine, static_cast<int>(rest), MPI_BYTE, peer, sends, tag);
  }

  void post(std::byte* data, int count, MPI_Datatype type, int peer, bool sends, Tag tag) {
    peers_.push_back(peer);
    MPI_Request& request = requests_.emplace_back();
    const std::lock_guard lock(mpi_);
    const int error = sends ? MPI_Isend(data, count, type, peer, tag, comm_, &request)
                            : MPI_Irecv(data, count, type, peer, tag, comm_, &request);
    if (error != MPI_SUCCESS) end_all_ranks(comm_, peer, "cannot be reached");
  }

  // Tells all others `reason`, if this rank has one, and hears theirs; who does not answer is lost. Who waits
  // for a message hears the call, and who waits for its device comes at the deadline of that. The messages
  // that are under way count no more.
  [[noreturn]] void call_roll(const std::string& reason) noexcept {
    is_roll_called_ = true;
    requests_.clear();
    peers_.clear();
    std::vector<std::array<std::byte, 512>> reasons(static_cast<std::size_t>(size_));
    std::array<std::byte, 512>& own = reasons[static_cast<std::size_t>(rank_)];
    std::memcpy(own.data(), reason.data(), std::min(reason.size(), own.size() - 1));
    for (int peer = 0; peer < size_; ++peer) {
      if (peer == rank_) continue;
      receive(reasons[static_cast<std::size_t>(peer)], peer, kRollCall);
      send(own, peer, kRollCall);
    }
    wait(2 * deadline_);
    int caller = 0;
    while (caller < size_ - 1 && reasons[static_cast<std::size_t>(caller)][0] == std::byte{}) ++caller;
    end_all_ranks(comm_, caller,
                  reinterpret_cast<const char*>(reasons[static_cast<std::size_t>(caller)].data()));
  }

  bool hears_roll_call() {
    int called = 0;
    MPI_Iprobe(MPI_ANY_SOURCE, kRollCall, comm_, &called, MPI_STATUS_IGNORE);
    return called != 0;
  }

  void wait() { wait(deadline_); }

  // Until all requests are done.
  void wait(double patience) {
    Deadline deadline(patience), silence_of_root(deadline_ / 2);
    const auto begin = std::chrono::steady_clock::now();
    for (std::uint64_t look = 1; !are_done(); ++look) {
      if (look % 64 != 0) continue;
      // Between batches rank 0 evaluates and writes; the cores are for what it does.
      if (std::chrono::steady_clock::now() - begin > 20ms) std::this_thread::sleep_for(100us);
      std::unique_lock lock(mpi_);
      if (!is_roll_called_ && hears_roll_call()) {
        lock.unlock();
        call_roll("");
      }
      if (pulse_.was_felt()) silence_of_root = Deadline(deadline_ / 2);
      const bool has_root = rank_ == 0 || !silence_of_root.is_over();
      if (!deadline.is_over()) continue;
      if (const auto late = late_rank(has_root)) end_all_ranks(comm_, *late, silence(patience));
      deadline = Deadline(patience);
    }
    requests_.clear();
    peers_.clear();
  }

  // Returns a rank that this one has waited for in vain. With `has_root`, rank 0 is not one: it may itself
  // wait in vain, for a rank that it will name; nobody else waits for one rank while others go on.
  std::optional<int> late_rank(bool has_root) {
    std::optional<int> late;
    for (std::size_t i = 0; i < requests_.size(); ++i) {
      if (!is_open(i) || (has_root && peers_[i] == 0)) continue;
      if (!late || peers_[i] == 0) late = peers_[i];
    }
    return late;
  }

  bool are_done() {
    int done = 0;
    const std::lock_guard lock(mpi_);
    if (MPI_Testall(static_cast<int>(requests_.size()), requests_.data(), &done, MPI_STATUSES_IGNORE) !=
        MPI_SUCCESS)
      end_all_ranks(comm_, late_rank(false).value_or(rank_), "is lost");
    return done != 0;
  }

  bool is_open(std::size_t i) {
    int done = 0;
    return requests_[i] != MPI_REQUEST_NULL &&
           (MPI_Request_get_status(requests_[i], &done, MPI_STATUS_IGNORE) != MPI_SUCCESS || done == 0);
  }

  MPI_Comm comm_;
  double deadline_;
  std::mutex mpi_;  // held around calls of MPI: rank 0 has a second thread that makes some
  MpiPulse pulse_;
  int rank_ = 0, size_ = 1, local_rank_ = 0;
  bool is_roll_called_ = false;  // the group ends
  MPI_Datatype line_{};
  std::vector<MPI_Request> requests_;
  std::vector<int> peers_;  // of each request
};

int count_ranks_on_these_cores() {
  MPI_Comm machine = ranks_of_this_machine(MPI_COMM_WORLD);
  int size = 1, rank = 0;
  MPI_Comm_size(machine, &size);
  MPI_Comm_rank(machine, &rank);
  std::vector<cpu_set_t> sets(static_cast<std::size_t>(size));
  cpu_set_t& own = sets[static_cast<std::size_t>(rank)];
  // A machine may have more cores than fit: then on all of them.
  if (::sched_getaffinity(0, sizeof own, &own) != 0) std::memset(&own, 0xff, sizeof own);
  MPI_Allgather(MPI_IN_PLACE, 0, MPI_BYTE, sets.data(), sizeof(cpu_set_t), MPI_BYTE, machine);
  MPI_Comm_free(&machine);
  int count = 0;
  for (const cpu_set_t& set : sets) {
    cpu_set_t both;
    CPU_AND(&both, &set, &own);
    count += CPU_COUNT(&both) > 0 ? 1 : 0;
  }
  return count;
}

class Session final : public MpiSession {
 public:
  explicit Session(double deadline) {
    int provided = 0;
    if (MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided) != MPI_SUCCESS)
      throw ConfigError("MPI cannot start");
    if (provided < MPI_THREAD_SERIALIZED)
      throw ConfigError("this MPI cannot be called by one thread after the other (MPI_THREAD_SERIALIZED)");
    MPI_Comm_dup(MPI_COMM_WORLD, &comm_);
    MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN);
    ranks_on_these_cores_ = count_ranks_on_these_cores();
    world_.emplace(comm_, deadline);  // After an error the launcher ends the others, which wait in here.
  }
  ~Session() override {
    world_.reset();
    MPI_Comm_free(&comm_);
    MPI_Finalize();
  }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  Communicator& world() override { return *world_; }
  int ranks_on_these_cores() const override { return ranks_on_these_cores_; }

 private:
  MPI_Comm comm_{};
  std::optional<MpiCommunicator> world_;
  int ranks_on_these_cores_ = 1;
};

}  // namespace
}  // namespace sweep

extern "C" sweep::MpiSession* sweep_make_mpi_session(double deadline) {
  return std::make_unique<sweep::Session>(deadline).release();
}
