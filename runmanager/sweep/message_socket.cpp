#include "runmanager/sweep/message_socket.h"

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <new>
#include <utility>

#include "core/base/error.h"
#include "core/json/json_text.h"
#include "runmanager/records/run_record_json.h"
#include "tbwriter/event_files.h"

namespace sweep {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char *kDamaged = "a message between a sweep and its worker is damaged",
                     *kFromWorker = "a worker's message";
constexpr std::size_t kLengthBytes = sizeof(std::uint32_t);
constexpr std::uint32_t kLargest = 1 << 30;

// Room for one descriptor.
struct Control {
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> bytes{};
};

// Sends some of `bytes`, and the descriptor with the first of them.
ssize_t send_some(int fd, std::string_view bytes, int descriptor) {
  iovec part{.iov_base = const_cast<char*>(bytes.data()), .iov_len = bytes.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  Control control;
  if (descriptor >= 0) {
    message.msg_control = control.bytes.data();
    message.msg_controllen = control.bytes.size();
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(header), &descriptor, sizeof(int));
  }
  return ::sendmsg(fd, &message, MSG_NOSIGNAL);
}

bool send_all(int fd, std::string_view bytes, int descriptor) {
  while (!bytes.empty()) {
    const ssize_t sent = send_some(fd, bytes, descriptor);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
    descriptor = -1;
  }
  return true;
}

}  // namespace

MessageSocket::~MessageSocket() {
  ::close(fd_);
  if (const int left = take_descriptor(); left >= 0) ::close(left);
}

bool MessageSocket::send(const Json& message, int descriptor) {
  std::string bytes(kLengthBytes, '\0');
  Json::to_cbor(message, bytes);
  const auto length = static_cast<std::uint32_t>(bytes.size() - kLengthBytes);
  std::memcpy(bytes.data(), &length, kLengthBytes);
  if (send_all(fd_, bytes, descriptor)) return true;
  // The other end may wait for a message that is lost, or half of which has arrived.
  ::shutdown(fd_, SHUT_RDWR);
  return false;
}

bool MessageSocket::parse_next(Json& message) {
  const std::size_t have = received_.size() - parsed_;
  std::uint32_t length = 0;
  if (have >= kLengthBytes) std::memcpy(&length, received_.data() + parsed_, kLengthBytes);
  if (length > kLargest) throw DataError(kDamaged);
  if (have < kLengthBytes || have - kLengthBytes < length) {
    // Only now, so that a buffer of many small messages is moved once.
    received_.erase(0, parsed_);
    parsed_ = 0;
    return false;
  }
  const std::string_view bytes(received_.data() + parsed_ + kLengthBytes, length);
  parsed_ += kLengthBytes + length;
  try {
    message = parse_cbor(bytes, kFromWorker);
  } catch (const DataError&) {
    throw DataError(kDamaged);
  }
  return true;
}

// Appends what has arrived. Returns how much that is, 0 at the end, -1 and errno for an error.
ssize_t MessageSocket::receive_bytes(int flags) {
  std::array<char, 1 << 16> buffer;
  iovec part{.iov_base = buffer.data(), .iov_len = buffer.size()};
  Control control;
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.bytes.data();
  message.msg_controllen = control.bytes.size();
  ssize_t got = -1;
  do {
    got = ::recvmsg(fd_, &message, flags | MSG_CMSG_CLOEXEC);
  } while (got < 0 && errno == EINTR);
  if (got <= 0) return got;
  received_.append(buffer.data(), static_cast<std::size_t>(got));
  const cmsghdr* header = CMSG_FIRSTHDR(&message);
  if (header != nullptr && header->cmsg_type == SCM_RIGHTS) {
    int descriptor = -1;
    std::memcpy(&descriptor, CMSG_DATA(header), sizeof(int));
    if (const int before = std::exchange(descriptor_, descriptor); before >= 0) ::close(before);
  }
  return got;
}

bool MessageSocket::receive(Json& message) {
  while (!parse_next(message)) {
    if (receive_bytes(0) <= 0) return false;
  }
  return true;
}

MessageSocket::Arrived MessageSocket::poll(Json& message) {
  while (!parse_next(message)) {
    const ssize_t got = receive_bytes(MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return Arrived::kNothing;
    if (got <= 0) return Arrived::kEnd;
  }
  return Arrived::kMessage;
}

namespace {

Json json_of(const RunPlan& plan) {
  Json finished = Json::array();
  for (const EpochRecord& epoch : plan.finished_epochs) finished.push_back(to_json(epoch));
  return {{"plan",
           {{"name", plan.name},
            {"epochs", plan.epochs},
            {"batches", plan.batches},
            {"samples", plan.samples},
            {"trained_epochs", plan.trained_epochs},
            {"finished", std::move(finished)},
            {"has_classes", plan.has_classes}}}};
}

Json json_of(const TrainedBatches& batches) {
  const Totals& totals = batches.totals;
  return {{"batches",
           {{"epoch", batches.epoch},
            {"count", batches.count},
            {"loss", totals.loss},
            {"correct", totals.correct},
            {"samples", totals.samples}}}};
}

Json json_of(const RunPhase& phase) { return {{"phase", phase.name}}; }

Json json_of(const EpochRecord& epoch) { return {{"epoch", to_json(epoch)}}; }

Json json_of(const TrainedRun& trained) {
  return {{"end",
           {{"record", to_json(trained.record)},
            {"failure", trained.failure},
            {"changes_epochs", trained.changes_epochs}}}};
}

Json json_of(const LostRun& lost) { return {{"lost", lost.reason}}; }

Json json_of(const UnwritableRun& run) {
  return {{"unwritable", {{"error", run.error}, {"only_its_directory", run.only_its_directory}}}};
}

RunPlan plan_of(const Json& json) {
  RunPlan plan{.name = json.at("name"),
               .epochs = json.at("epochs"),
               .batches = json.at("batches"),
               .samples = json.at("samples"),
               .trained_epochs = json.at("trained_epochs"),
               .has_classes = json.at("has_classes")};
  for (const Json& epoch : json.at("finished"))
    plan.finished_epochs.push_back(epoch_record_from_json(epoch, kFromWorker));
  return plan;
}

TrainedBatches batches_of(const Json& json) {
  return {.epoch = json.at("epoch"),
          .count = json.at("count"),
          .totals = {.loss = json.at("loss"), .correct = json.at("correct"), .samples = json.at("samples")}};
}

}  // namespace

Json message_of(const RunEvent& event) {
  return std::visit([](const auto& of_kind) { return json_of(of_kind); }, event);
}

RunEvent event_of(Json message) try {
  if (message.empty()) throw DataError("its worker sent a message without content");
  const std::string kind = message.begin().key();
  Json& content = message.begin().value();
  if (kind == "plan") return plan_of(content);
  if (kind == "batches") return batches_of(content);
  if (kind == "phase") return RunPhase{content};
  if (kind == "epoch") return epoch_record_from_json(content, kFromWorker);
  if (kind == "end")
    return TrainedRun{.record = run_record_from_json(std::move(content.at("record")), kFromWorker),
                      .failure = content.at("failure"),
                      .changes_epochs = content.at("changes_epochs")};
  if (kind == "lost") return LostRun{content};
  return UnwritableRun{.error = content.at("error"), .only_its_directory = content.at("only_its_directory")};
} catch (const Json::exception&) {
  throw DataError(kDamaged);
}

RunEvent event_of(const std::exception& error) {
  if (dynamic_cast<const IoError*>(&error) != nullptr)
    return UnwritableRun{
        .error = error.what(),
        .only_its_directory = dynamic_cast<const tbwriter::DirectoryError*>(&error) != nullptr};
  const bool is_memory = dynamic_cast<const std::bad_alloc*>(&error) != nullptr;
  return LostRun{is_memory ? "out of memory" : error.what()};
}

}  // namespace sweep
