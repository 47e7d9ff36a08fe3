// An array that either owns its values or borrows them, for example from a mapping that processes share.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace sweep {

/// Read-only once it is built; it may then be read by several threads. Copying an owning array copies its
/// values; copying a borrowing one copies the pointer and keeps the owner alive.
template <typename T>
class MaybeOwnedArray {
 public:
  MaybeOwnedArray() = default;
  MaybeOwnedArray(std::vector<T> values) : owned_(std::move(values)) {}  // NOLINT: converts implicitly
  /// Borrows `values`, which must stay valid as long as `owner` lives. `owner` must not be null.
  MaybeOwnedArray(std::span<const T> values, std::shared_ptr<const void> owner)
      : borrowed_(values), owner_(std::move(owner)) {}

  const T* data() const { return owner_ ? borrowed_.data() : owned_.data(); }
  std::size_t size() const { return owner_ ? borrowed_.size() : owned_.size(); }
  bool empty() const { return size() == 0; }
  const T* begin() const { return data(); }
  const T* end() const { return data() + size(); }
  /// The values, to be changed while it is built. Copies borrowed ones first.
  std::vector<T>& edit() {
    if (owner_) owned_.assign(borrowed_.begin(), borrowed_.end());
    owner_.reset();
    return owned_;
  }
  friend bool operator==(const MaybeOwnedArray& a, const MaybeOwnedArray& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  }
  const T& operator[](std::size_t i) const { return data()[i]; }

 private:
  std::vector<T> owned_;
  std::span<const T> borrowed_;
  std::shared_ptr<const void> owner_;
};

}  // namespace sweep
