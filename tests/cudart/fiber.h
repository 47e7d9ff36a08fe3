// A function with its own stack that can stop in the middle and go on later, on the same thread (a
// coroutine).
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>

namespace sweep::cuda::cudart {

/// Belongs to one thread, which makes and resumes it. Destroying a fiber in the middle of its function drops
/// its stack: destructors of objects on it do not run.
class Fiber {
 public:
  /// `body` starts with the first resume(). It must neither throw nor return.
  explicit Fiber(std::function<void()> body);
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  /// Runs the body until it calls yield().
  void resume();

  /// Brings the top of its stack to the cache, for a resume() that comes soon.
  void prefetch() const;

  /// The memory that the body's local variables are in.
  std::span<const std::byte> stack() const;

  /// Called by the body: returns from resume(). The next resume() goes on after this call.
  void yield();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace sweep::cuda::cudart
