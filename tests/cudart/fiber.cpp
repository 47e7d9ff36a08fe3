#include "tests/cudart/fiber.h"

#include <sys/mman.h>
#include <unistd.h>

#include <new>

// A kernel with barriers switches once per thread and barrier, millions of times in a test. glibc's
// swapcontext saves the signal mask with a system call each time, which costs ten times as much as the switch
// itself; under AddressSanitizer it also clears the shadow of a whole stack. So x86-64 has its own switch,
// and the sanitizers are told of it. Other processors make do with swapcontext.
#if defined(__x86_64__)
#define SWEEP_ASM_SWITCH 1
#else
#define SWEEP_ASM_SWITCH 0
#include <ucontext.h>
#endif
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif
#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

#if SWEEP_ASM_SWITCH
// Pushes the registers that a call preserves (System V ABI), stores the stack pointer in *saved, switches to
// the stack `other`, pops the registers from there and returns to the address on top. A call preserves
// nothing else.
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

namespace sweep::cuda::cudart {
namespace {

constexpr std::size_t kStackBytes = std::size_t{256} << 10;  // only pages that are touched cost memory

thread_local void* starting = nullptr;  // the State that enter() is to run: makecontext passes only ints

// Offsets that differ from fiber to fiber. Stacks that all start at a page boundary would compete for the
// same few cache sets (cache colouring).
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
    ::mprotect(memory, page, PROT_NONE);  // guard page: a kernel that needs more stack crashes here
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
#if defined(__SANITIZE_ADDRESS__)
    // Its unfinished functions leave their frames marked, and the addresses may be mapped again: by another
    // fiber, or as a thread's stack and thread_local variables, whose marks nobody else takes away.
    __asan_unpoison_memory_region(memory, bytes);
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
#if SWEEP_ASM_SWITCH
    auto** top = reinterpret_cast<void**>(stack + stack_bytes);
    *--top = nullptr;  // the return address of enter(), which never returns; aligns its stack as a call would
    *--top = reinterpret_cast<void*>(&enter);
    context = top - 6;  // below them, the six registers that the first switch pops
#else
    ::getcontext(&context);
    context.uc_stack.ss_sp = stack;
    context.uc_stack.ss_size = stack_bytes;
    context.uc_link = nullptr;
    ::makecontext(&context, &enter, 0);
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
#if SWEEP_ASM_SWITCH
    sweep_switch_stack(&caller, context);
#else
    ::swapcontext(&caller, &context);
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
#if SWEEP_ASM_SWITCH
    sweep_switch_stack(&context, caller);
#else
    ::swapcontext(&context, &caller);
#endif
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(fake, &caller_stack, &caller_bytes);
#endif
  }

  std::function<void()> body;
  void* memory = nullptr;
  std::size_t bytes = 0, stack_bytes = 0;
  char* stack = nullptr;
#if SWEEP_ASM_SWITCH
  void *context = nullptr, *caller = nullptr;  // stack pointers while the other side runs
#else
  ucontext_t context{}, caller{};
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
std::span<const std::byte> Fiber::stack() const {
  return {reinterpret_cast<const std::byte*>(state_->stack), state_->stack_bytes};
}
void Fiber::prefetch() const {
#if SWEEP_ASM_SWITCH
  constexpr int kLine = 64, kLines = 3;  // the registers, and the frames of the barrier and its caller
  for (int line = 0; line < kLines; ++line)
    __builtin_prefetch(static_cast<const char*>(state_->context) + line * kLine);
#endif
}
void Fiber::resume() { state_->resume(); }
void Fiber::yield() { state_->yield(); }

}  // namespace sweep::cuda::cudart
