// A function with a stack of its own that can stop in its middle and go on later, on the same thread.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

namespace sweep::cuda::host {

/// Made and resumed by one thread. A fiber that is destroyed in the middle of its function is forgotten: the
/// destructors of what lies on its stack do not run.
class Fiber {
 public:
  /// `body` starts with the first resume(). It must neither throw nor return.
  explicit Fiber(std::function<void()> body);
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  /// Runs the body until it calls yield().
  void resume();

  /// Called by the body: goes back to resume().
  void yield();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace sweep::cuda::host
