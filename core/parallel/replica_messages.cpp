#include "core/parallel/replica_messages.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>

#include "core/base/error.h"

namespace sweep {
namespace {

// The fields of what is sent. The bindings name all, so that a new field is an error here until it is sent.
#define SWEEP_SENT(Type, ...)     \
  auto fields_of(Type& value) {   \
    auto& [__VA_ARGS__] = value;  \
    return std::tie(__VA_ARGS__); \
  }
SWEEP_SENT(LayerSpec, name, type, arguments, layers, shortcut)
SWEEP_SENT(NetworkSpec, name, layers)
SWEEP_SENT(InputTransform, mean, deviation)
SWEEP_SENT(LossOptions, kind, label_smoothing, class_weights, beta)
SWEEP_SENT(AugmentOptions, steps, seed, repeat)
SWEEP_SENT(LayerPlacement, layers, device)
SWEEP_SENT(PipelineOptions, stages, first_layers, micro_batches, schedule)
SWEEP_SENT(ParallelOptions, data, model, pipeline)
SWEEP_SENT(EngineOptions, device, threads, batch_size, optimizer, transform, seed, loss, clip_norm, augment,
           placement, deterministic, parallel, accumulation_steps)
#undef SWEEP_SENT

// The bytes of values, in one order for both directions: each call writes its value, or reads it from what
// was written.
class Message {
 public:
  Message() = default;
  explicit Message(std::span<const std::byte> bytes) : reads_(true), left_(bytes) {}

  // Numbers, enums, and structures of them.
  template <class T>
  requires std::is_trivially_copyable_v<T>
  void operator()(T& value) {
    const auto bytes = std::as_writable_bytes(std::span<T>(&value, 1));
    if (!reads_) {
      written_.insert(written_.end(), bytes.begin(), bytes.end());
      return;
    }
    if (bytes.size() > left_.size()) fail();
    std::memcpy(bytes.data(), left_.data(), bytes.size());
    left_ = left_.subspan(bytes.size());
  }
  void operator()(std::string& text) { range(text); }
  template <class T>
  void operator()(std::vector<T>& values) {
    range(values);
  }
  void operator()(Arguments& arguments) {
    auto known = arguments.begin();
    for (std::uint64_t left = count(arguments.size()); left > 0; --left) {
      std::string name = reads_ ? "" : (known++)->first;
      (*this)(name);
      (*this)(arguments[name]);
    }
  }
  template <class... T>
  void operator()(std::variant<T...>& value) {
    const std::uint64_t index = count(value.index());
    if (index >= sizeof...(T)) fail();
    std::uint64_t at = 0;
    if (reads_) ((at++ == index ? void(value.template emplace<T>()) : void()), ...);
    std::visit([this](auto& held) { (*this)(held); }, value);
  }
  template <class T>
  void operator()(std::optional<T>& value) {
    bool has_value = value.has_value();
    (*this)(has_value);
    if (reads_ && has_value) value.emplace();
    if (has_value) (*this)(*value);
  }
  template <class T>
  requires requires(T& value) { fields_of(value); }
  void operator()(T& value) {
    std::apply([this](auto&... fields) { ((*this)(fields), ...); }, fields_of(value));
  }

  std::vector<std::byte> take() { return std::move(written_); }
  void end() const {
    if (!left_.empty()) fail();
  }

 private:
  [[noreturn]] static void fail() {
    throw DataError("the description of an engine is damaged; do all ranks run the same program?");
  }
  // Each of what is counted takes a byte at least.
  std::uint64_t count(std::uint64_t number) {
    (*this)(number);
    if (reads_ && number > left_.size()) fail();
    return number;
  }
  void range(auto& values) {
    values.resize(count(values.size()));
    for (auto& value : values) (*this)(value);
  }

  bool reads_ = false;
  std::span<const std::byte> left_;  // to read
  std::vector<std::byte> written_;
};

// Copies samples [begin, end) of the batch from an array of its set to their places in `to`, which has room
// for the whole batch.
void pack(const Batch& batch, const auto& array, std::size_t begin, std::size_t end,
          std::vector<std::byte>& to) {
  const std::byte* from = std::visit([](const auto& values) { return std::as_bytes(values).data(); }, array);
  const std::size_t bytes = to.size() / batch.size();
  for (std::size_t i = begin; i < end; ++i)
    std::memcpy(to.data() + i * bytes, from + batch.indices[i] * bytes, bytes);
}

template <class T>
std::span<const T> values_of(const std::vector<std::byte>& array) {
  return {static_cast<const T*>(static_cast<const void*>(array.data())), array.size() / sizeof(T)};
}

}  // namespace

std::vector<std::byte> encode_engine(const Network& network, const EngineOptions& options) {
  NetworkSpec spec = network.spec();
  Shape input = network.input();
  EngineOptions copy = options;
  Message message;
  message(spec);
  message(input);
  message(copy);
  return message.take();
}

SentEngine decode_engine(std::span<const std::byte> bytes) {
  Message message(bytes);
  NetworkSpec spec;
  Shape input;
  EngineOptions options;
  message(spec);
  message(input);
  message(options);
  message.end();
  return {Network(std::move(spec), std::move(input)), std::move(options)};
}

SentBatch::SentBatch(const Network& network)
    : values_(element_count(network.input())), outputs_(element_count(network.output())) {}

void SentBatch::scatter(Communicator& group, std::vector<std::byte>& array, std::size_t bytes,
                        const RankShares& shares) {
  for (std::size_t turn = 0; turn < shares.turns(); ++turn) {
    begins_.clear();
    for (const std::size_t sample : shares.of(turn)) begins_.push_back(sample * bytes);
    group.scatter({array.data(), begins_});
  }
}

Batch SentBatch::exchange(Communicator& group, const BatchKind& kind, const RankShares& shares,
                          const Batch* batch) {
  const std::size_t sample_bytes = values_ * (kind.has_float_samples ? sizeof(float) : 1);
  const std::size_t target_bytes = kind.has_number_targets ? outputs_ * sizeof(float) : sizeof(std::int32_t);
  samples_.resize(kind.samples * sample_bytes);
  targets_.resize(kind.samples * target_bytes);
  for (std::size_t turn = 0; batch != nullptr && turn < shares.turns(); ++turn) {
    // Those that are not rank 0's own.
    const std::size_t begin = shares.of(turn)[1], end = shares.of(turn).back();
    pack(*batch, batch->samples, begin, end, samples_);
    if (kind.has_number_targets) pack(*batch, batch->targets, begin, end, targets_);
  }
  scatter(group, samples_, sample_bytes, shares);
  if (kind.has_number_targets) {
    scatter(group, targets_, target_bytes, shares);
  } else {
    if (batch != nullptr) pack(*batch, batch->targets, 0, batch->size(), targets_);
    group.broadcast(targets_);
  }
  if (batch != nullptr) return *batch;
  rows_.resize(kind.samples);
  std::iota(rows_.begin(), rows_.end(), 0U);
  Batch received{.samples = {}, .targets = {}, .indices = rows_};
  if (kind.has_float_samples)
    received.samples = values_of<float>(samples_);
  else
    received.samples = values_of<std::uint8_t>(samples_);
  if (kind.has_number_targets)
    received.targets = values_of<float>(targets_);
  else
    received.targets = values_of<std::int32_t>(targets_);
  return received;
}

}  // namespace sweep
