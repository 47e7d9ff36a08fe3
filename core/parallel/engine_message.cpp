#include "core/parallel/engine_message.h"

#include <concepts>
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

template <class T, class Of>
concept Is = std::same_as<std::remove_const_t<T>, Of>;

// The fields of what is sent. The bindings name all, so that a new field is an error here until it is sent.
auto fields_of(Is<LayerSpec> auto& value) {
  auto& [name, type, arguments, layers, shortcut] = value;
  return std::tie(name, type, arguments, layers, shortcut);
}

auto fields_of(Is<NetworkSpec> auto& value) {
  auto& [name, layers] = value;
  return std::tie(name, layers);
}

auto fields_of(Is<InputTransform> auto& value) {
  auto& [mean, deviation] = value;
  return std::tie(mean, deviation);
}

auto fields_of(Is<LossOptions> auto& value) {
  auto& [kind, label_smoothing, class_weights, beta] = value;
  return std::tie(kind, label_smoothing, class_weights, beta);
}

auto fields_of(Is<AugmentOptions> auto& value) {
  auto& [steps, seed, repeat] = value;
  return std::tie(steps, seed, repeat);
}

auto fields_of(Is<LayerPlacement> auto& value) {
  auto& [layers, device] = value;
  return std::tie(layers, device);
}

auto fields_of(Is<PipelineOptions> auto& value) {
  auto& [stages, first_layers, micro_batches, schedule] = value;
  return std::tie(stages, first_layers, micro_batches, schedule);
}

auto fields_of(Is<ParallelOptions> auto& value) {
  auto& [data, model, pipeline] = value;
  return std::tie(data, model, pipeline);
}

auto fields_of(Is<EngineOptions> auto& value) {
  auto& [device, threads, batch_size, optimizer, transform, seed, loss, clip_norm, augment, placement,
         deterministic, parallel, accumulation_steps] = value;
  return std::tie(device, threads, batch_size, optimizer, transform, seed, loss, clip_norm, augment,
                  placement, deterministic, parallel, accumulation_steps);
}

class Writer {
 public:
  // Numbers, enums, and structures of them.
  template <class T>
  requires std::is_trivially_copyable_v<T>
  void operator()(const T& value) {
    const auto bytes = std::as_bytes(std::span<const T>(&value, 1));
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }
  void operator()(const std::string& text) { range(text); }
  template <class T>
  void operator()(const std::vector<T>& values) {
    range(values);
  }
  void operator()(const Arguments& arguments) {
    (*this)(static_cast<std::uint64_t>(arguments.size()));
    for (const auto& [name, value] : arguments) (*this)(name), (*this)(value);
  }
  template <class... T>
  void operator()(const std::variant<T...>& value) {
    (*this)(static_cast<std::uint64_t>(value.index()));
    std::visit([this](const auto& held) { (*this)(held); }, value);
  }
  template <class T>
  void operator()(const std::optional<T>& value) {
    (*this)(value.has_value());
    if (value) (*this)(*value);
  }
  template <class T>
  requires requires(const T& value) { fields_of(value); }
  void operator()(const T& value) {
    std::apply([this](const auto&... fields) { ((*this)(fields), ...); }, fields_of(value));
  }

  std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  void range(const auto& values) {
    (*this)(static_cast<std::uint64_t>(values.size()));
    for (const auto& value : values) (*this)(value);
  }

  std::vector<std::byte> bytes_;
};

class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  template <class T>
  requires std::is_trivially_copyable_v<T>
  void operator()(T& value) {
    if (sizeof(T) > bytes_.size()) fail();
    std::memcpy(&value, bytes_.data(), sizeof(T));
    bytes_ = bytes_.subspan(sizeof(T));
  }
  void operator()(std::string& text) { range(text); }
  template <class T>
  void operator()(std::vector<T>& values) {
    range(values);
  }
  void operator()(Arguments& arguments) {
    for (std::uint64_t left = count(); left > 0; --left) {
      std::string name;
      (*this)(name);
      (*this)(arguments[name]);
    }
  }
  template <class... T>
  void operator()(std::variant<T...>& value) {
    const std::uint64_t index = count();
    if (index >= sizeof...(T)) fail();
    std::uint64_t at = 0;
    ((at++ == index ? (*this)(value.template emplace<T>()) : void()), ...);
  }
  template <class T>
  void operator()(std::optional<T>& value) {
    bool has_value = false;
    (*this)(has_value);
    if (has_value) (*this)(value.emplace());
  }
  template <class T>
  requires requires(T& value) { fields_of(value); }
  void operator()(T& value) {
    std::apply([this](auto&... fields) { ((*this)(fields), ...); }, fields_of(value));
  }

  void end() const {
    if (!bytes_.empty()) fail();
  }

 private:
  [[noreturn]] static void fail() {
    throw DataError("the description of an engine is damaged; do all ranks run the same program?");
  }
  // Each of what is counted takes a byte at least.
  std::uint64_t count() {
    std::uint64_t number = 0;
    (*this)(number);
    if (number > bytes_.size()) fail();
    return number;
  }
  void range(auto& values) {
    values.resize(count());
    for (auto& value : values) (*this)(value);
  }

  std::span<const std::byte> bytes_;
};

}  // namespace

std::vector<std::byte> encode_engine(const Network& network, const EngineOptions& options) {
  Writer writer;
  writer(network.spec());
  writer(network.input());
  writer(options);
  return writer.take();
}

SentEngine decode_engine(std::span<const std::byte> message) {
  Reader reader(message);
  NetworkSpec spec;
  Shape input;
  EngineOptions options;
  reader(spec);
  reader(input);
  reader(options);
  reader.end();
  return {Network(std::move(spec), std::move(input)), std::move(options)};
}

}  // namespace sweep
