// An array that is either a vector of its own or memory that somebody else keeps: a mapping that processes
// share.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace sweep {

/// Read-only once it is built. A copy of elements of its own copies them; a copy of kept ones does not.
template <typename T>
class Elements {
 public:
  Elements() = default;
  Elements(std::vector<T> values) : own_(std::move(values)) {}  // NOLINT: an array is one of these
  /// `values` stay where they are, valid as long as `keeper` lives.
  Elements(std::span<const T> values, std::shared_ptr<const void> keeper)
      : kept_(values), keeper_(std::move(keeper)) {}

  const T* data() const { return keeper_ ? kept_.data() : own_.data(); }
  std::size_t size() const { return keeper_ ? kept_.size() : own_.size(); }
  bool empty() const { return size() == 0; }
  const T* begin() const { return data(); }
  const T* end() const { return data() + size(); }
  const T& operator[](std::size_t i) const { return data()[i]; }

  /// For elements of its own only.
  void push_back(T value) { own_.push_back(value); }
  void append(std::size_t count, T value) { own_.insert(own_.end(), count, value); }

 private:
  std::vector<T> own_;
  std::span<const T> kept_;
  std::shared_ptr<const void> keeper_;
};

}  // namespace sweep
