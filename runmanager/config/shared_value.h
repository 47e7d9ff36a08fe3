// A value that copies share.
#pragma once

#include <memory>
#include <utility>

namespace sweep {

/// A constant of type T that costs little to copy, however large T is: copies refer to the same object.
/// Assigning another value changes this copy only. Thread-safe as a std::shared_ptr.
template <typename T>
class SharedValue {
 public:
  SharedValue() : SharedValue(T()) {}
  SharedValue(T value) : value_(std::make_shared<const T>(std::move(value))) {}

  const T& operator*() const { return *value_; }
  const T* operator->() const { return value_.get(); }
  operator const T&() const { return *value_; }

 private:
  std::shared_ptr<const T> value_;
};

}  // namespace sweep
