#include "core/parallel/engine_message.h"

#include <cstdint>
#include <cstring>
#include <map>
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
auto fields_of(LayerSpec& value) {
  auto& [name, type, arguments, layers, shortcut] = value;
  return std::tie(name, type, arguments, layers, shortcut);
}

auto fields_of(NetworkSpec& value) {
  auto& [name, layers] = value;
  return std::tie(name, layers);
}

auto fields_of(InputTransform& value) {
  auto& [mean, deviation] = value;
  return std::tie(mean, deviation);
}

auto fields_of(LossOptions& value) {
  auto& [kind, label_smoothing, class_weights, beta] = value;
  return std::tie(kind, label_smoothing, class_weights, beta);
}

auto fields_of(AugmentOptions& value) {
  auto& [steps, seed, repeat] = value;
  return std::tie(steps, seed, repeat);
}

auto fields_of(LayerPlacement& value) {
  auto& [layers, device] = value;
  return std::tie(layers, device);
}

auto fields_of(PipelineOptions& value) {
  auto& [stages, first_layers, micro_batches, schedule] = value;
  return std::tie(stages, first_layers, micro_batches, schedule);
}

auto fields_of(ParallelOptions& value) {
  auto& [data, model, pipeline] = value;
  return std::tie(data, model, pipeline);
}

auto fields_of(EngineOptions& value) {
  auto& [device, threads, batch_size, optimizer, transform, seed, loss, clip_norm, augment, placement,
         deterministic, parallel, accumulation_steps] = value;
  return std::tie(device, threads, batch_size, optimizer, transform, seed, loss, clip_norm, augment,
                  placement, deterministic, parallel, accumulation_steps);
}

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

}  // namespace sweep
