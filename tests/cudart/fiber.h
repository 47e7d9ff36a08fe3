// A function with its own stack that can stop in the middle and go on later, on the same thread (a
// coroutine).
#pragma once

#include <cstddef>
#include <functional>
#include <span>

namespace sweep::cuda::cudart {

/// Belongs to one thread, which makes it and switches to it. Destroying a fiber in the middle of its function
/// drops its stack: destructors of objects on it do not run.
class Fiber {
 public:
  /// The calling thread itself, on the stack that it has.
  Fiber();
  /// `body` starts with the first switch to it. It must neither throw nor return.
  explicit Fiber(std::function<void()> body);
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  /// Called on the fiber that runs: lets `next` go on. Returns when another one switches back to this one.
  void switch_to(Fiber& next);

  /// The memory that the body's local variables are in.
  std::span<const std::byte> stack() const { return {static_cast<const std::byte*>(stack_), stack_bytes_}; }

 private:
  static void enter();

  std::function<void()> body_;
  void* memory_ = nullptr;       // the stack with its guard page; nullptr: of the thread itself
  const void* stack_ = nullptr;  // of the thread itself: known only to AddressSanitizer
  std::size_t stack_bytes_ = 0;
  void* context_ = nullptr;    // while it does not run: the stack pointer, or a ucontext_t
  void* sanitizer_ = nullptr;  // what ThreadSanitizer calls it
};

}  // namespace sweep::cuda::cudart
