// The boundary to XLA: no exception leaves a handler, also where there is no memory to say what happened.
#include "cpu/ffi.hpp"

#include <atomic>
#include <cstdlib>
#include <new>
#include <stdexcept>
#include <string>

#include "check.hpp"

namespace {

std::atomic<bool> is_heap_empty = false;

}  // namespace

// Not inlined, or the compiler takes the pair of them for a mistake.
[[gnu::noinline]] void* operator new(std::size_t size) {
  void* memory = is_heap_empty ? nullptr : std::malloc(size);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace {

using snnjax::guarded;
namespace ffi = snnjax::ffi;

void exceptionsBecomeErrors() {
  CHECK(guarded("lif_network", [] {}).success());
  const ffi::Error own = guarded("lif_network", [] { throw snnjax::misfit("lif_network", "v", "fit", "more"); });
  CHECK(own.errc() == ffi::ErrorCode::kInvalidArgument);
  CHECK(own.message().starts_with("lif_network: `v` must fit, got more."));
  const ffi::Error memory = guarded("lif_network", [] { throw std::bad_alloc(); });
  CHECK(memory.errc() == ffi::ErrorCode::kResourceExhausted);
  CHECK_EQUAL(memory.message(), "lif_network: out of memory. Use a smaller batch.");
  const ffi::Error other = guarded("lif_network", [] { throw std::runtime_error("a mistake"); });
  CHECK(other.errc() == ffi::ErrorCode::kInternal);
  CHECK_EQUAL(other.message(), "lif_network: a mistake");
}

void errorsNeedNoMemory() {
  const ffi::Error error = guarded("lif_network", [] {
    is_heap_empty = true;
    throw std::bad_alloc();
  });
  is_heap_empty = false;
  CHECK(error.errc() == ffi::ErrorCode::kResourceExhausted);
  CHECK_EQUAL(error.message(), "out of memory");
}

}  // namespace

int main() {
  exceptionsBecomeErrors();
  errorsNeedNoMemory();
  return check::failures;
}
