#include "core/kernels/cuda/host/fiber.h"

#include <sys/mman.h>
#include <unistd.h>

#include <new>

// glibc's swapcontext asks the kernel for the signal mask each time, which takes ten times as long as all the
// rest; sanitizers know it, and other processors can do with it.
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define SWEEP_OWN_SWITCH 1
#else
#define SWEEP_OWN_SWITCH 0
#include <ucontext.h>
#endif
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

#if SWEEP_OWN_SWITCH
// Saves what a call has to preserve (System V ABI) on the stack, *saved = that stack, and takes the other
// one.
extern "C" void sweep_switch_stack(void** saved, void* other);
asm(R"(
.text
.type sweep_switch_stack, @function
sweep_switch_stack:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  popq %rcx
  jmpq *%rcx
.size sweep_switch_stack, .-sweep_switch_stack
)");
#endif

namespace sweep::cuda::host {
namespace {

constexpr std::size_t kStackBytes = std::size_t{256} << 10;  // only pages that are touched cost memory

thread_local void* starting = nullptr;  // the State whose body starts

// Stacks that begin at equal places of their pages would share a few lines of the cache.
std::size_t next_colour() {
  constexpr std::size_t kLine = 64, kLinesOfAPage = 64;
  thread_local std::size_t made = 0;
  return made++ * 13 % kLinesOfAPage * kLine;
}

}  // namespace

struct Fiber::State {
  explicit State(std::function<void()> function) : body(std::move(function)) {
    const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    bytes = kStackBytes + page;
    memory =
        ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    ::mprotect(memory, page, PROT_NONE);  // so that a kernel that needs more stack stops here
    stack = static_cast<char*>(memory) + page;
    stack_bytes = kStackBytes - next_colour();
    prepare();
#if defined(__SANITIZE_THREAD__)
    tsan = __tsan_create_fiber(0);
#endif
  }

  ~State() {
#if defined(__SANITIZE_THREAD__)
    __tsan_destroy_fiber(tsan);
#endif
    ::munmap(memory, bytes);
  }

  State(const State&) = delete;
  State& operator=(const State&) = delete;

  static void enter() {
    State& state = *static_cast<State*>(starting);
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(nullptr, &state.caller_stack, &state.caller_bytes);
#endif
    state.body();
  }

  void prepare() {
#if SWEEP_OWN_SWITCH
    auto** top = reinterpret_cast<void**>(stack + stack_bytes);
    *--top = nullptr;  // where enter() would return to; and its stack is aligned as after a call
    *--top = reinterpret_cast<void*>(&enter);
    own = top - 6;
#else
    ::getcontext(&own);
    own.uc_stack.ss_sp = stack;
    own.uc_stack.ss_size = stack_bytes;
    own.uc_link = nullptr;
    ::makecontext(&own, &enter, 0);
#endif
  }

  void resume() {
    starting = this;
#if defined(__SANITIZE_THREAD__)
    tsan_caller = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(tsan, 0);
#endif
#if defined(__SANITIZE_ADDRESS__)
    void* fake = nullptr;
    __sanitizer_start_switch_fiber(&fake, stack, stack_bytes);
#endif
#if SWEEP_OWN_SWITCH
    sweep_switch_stack(&caller, own);
#else
    ::swapcontext(&caller, &own);
#endif
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(fake, nullptr, nullptr);
#endif
  }

  void yield() {
#if defined(__SANITIZE_THREAD__)
    __tsan_switch_to_fiber(tsan_caller, 0);
#endif
#if defined(__SANITIZE_ADDRESS__)
    void* fake = nullptr;
    __sanitizer_start_switch_fiber(&fake, caller_stack, caller_bytes);
#endif
#if SWEEP_OWN_SWITCH
    sweep_switch_stack(&own, caller);
#else
    ::swapcontext(&own, &caller);
#endif
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(fake, &caller_stack, &caller_bytes);
#endif
  }

  std::function<void()> body;
  void* memory = nullptr;
  std::size_t bytes = 0, stack_bytes = 0;
  char* stack = nullptr;
#if SWEEP_OWN_SWITCH
  void *own = nullptr, *caller = nullptr;
#else
  ucontext_t own{}, caller{};
#endif
#if defined(__SANITIZE_ADDRESS__)
  const void* caller_stack = nullptr;
  std::size_t caller_bytes = 0;
#endif
#if defined(__SANITIZE_THREAD__)
  void *tsan = nullptr, *tsan_caller = nullptr;
#endif
};

Fiber::Fiber(std::function<void()> body) : state_(std::make_unique<State>(std::move(body))) {}
Fiber::~Fiber() = default;
void Fiber::resume() { state_->resume(); }
void Fiber::yield() { state_->yield(); }

}  // namespace sweep::cuda::host
