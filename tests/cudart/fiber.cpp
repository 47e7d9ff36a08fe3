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

std::size_t page_bytes() { return static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)); }

// Offsets that differ from fiber to fiber. Stacks that all start at a page boundary would compete for the
// same few cache sets (cache colouring).
std::size_t next_colour() {
  constexpr std::size_t kLine = 64, kLinesOfAPage = 64;
  thread_local std::size_t made = 0;
  return made++ * 13 % kLinesOfAPage * kLine;
}

constinit thread_local Fiber* running = nullptr;
#if defined(__SANITIZE_ADDRESS__)
constinit thread_local Fiber* previous = nullptr;  // which switched to the one that runs
#endif

}  // namespace

Fiber::Fiber() {
#if !SWEEP_ASM_SWITCH
  context_ = new ucontext_t;
#endif
#if defined(__SANITIZE_THREAD__)
  sanitizer_ = __tsan_get_current_fiber();
#endif
}

Fiber::Fiber(std::function<void()> body) : body_(std::move(body)) {
  const std::size_t page = page_bytes();
  memory_ = ::mmap(nullptr, kStackBytes + page, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory_ == MAP_FAILED) throw std::bad_alloc();
  ::mprotect(memory_, page, PROT_NONE);  // guard page: a kernel that needs more stack crashes here
  char* const stack = static_cast<char*>(memory_) + page;
  stack_ = stack;
  stack_bytes_ = kStackBytes - next_colour();
#if SWEEP_ASM_SWITCH
  auto** top = reinterpret_cast<void**>(stack + stack_bytes_);
  *--top = nullptr;  // the return address of enter(), which never returns; aligns its stack as a call would
  *--top = reinterpret_cast<void*>(&enter);
  context_ = top - 6;  // below them, the six registers that the first switch pops
#else
  auto* const context = new ucontext_t;
  context_ = context;
  ::getcontext(context);
  context->uc_stack.ss_sp = stack;
  context->uc_stack.ss_size = stack_bytes_;
  context->uc_link = nullptr;
  ::makecontext(context, &enter, 0);
#endif
#if defined(__SANITIZE_THREAD__)
  sanitizer_ = __tsan_create_fiber(0);
#endif
}

Fiber::~Fiber() {
#if !SWEEP_ASM_SWITCH
  delete static_cast<ucontext_t*>(context_);
#endif
  if (memory_ == nullptr) return;
  const std::size_t bytes = kStackBytes + page_bytes();
#if defined(__SANITIZE_THREAD__)
  __tsan_destroy_fiber(sanitizer_);
#endif
#if defined(__SANITIZE_ADDRESS__)
  // Its unfinished functions leave their frames marked, and the addresses may be mapped again: by another
  // fiber, or as a thread's stack and thread_local variables, whose marks nobody else takes away.
  __asan_unpoison_memory_region(memory_, bytes);
#endif
  ::munmap(memory_, bytes);
}

void Fiber::enter() {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(nullptr, &previous->stack_, &previous->stack_bytes_);
#endif
  running->body_();
}

void Fiber::switch_to(Fiber& next) {
  running = &next;
#if defined(__SANITIZE_THREAD__)
  __tsan_switch_to_fiber(next.sanitizer_, 0);
#endif
#if defined(__SANITIZE_ADDRESS__)
  previous = this;
  void* fake = nullptr;
  __sanitizer_start_switch_fiber(&fake, next.stack_, next.stack_bytes_);
#endif
#if SWEEP_ASM_SWITCH
  sweep_switch_stack(&context_, next.context_);
#else
  ::swapcontext(static_cast<ucontext_t*>(context_), static_cast<const ucontext_t*>(next.context_));
#endif
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(fake, &previous->stack_, &previous->stack_bytes_);
#endif
}

}  // namespace sweep::cuda::cudart
