// A run that fails midway: whichever allocation fails, the next run is right.
#include <cstdlib>
#include <new>

#include "plans.hpp"

namespace {

constexpr std::size_t kNever = SIZE_MAX;
thread_local std::size_t allocations_left = kNever;  // of this thread, until one fails

}  // namespace

// Not inlined: the compiler would warn of mismatched malloc and delete.
[[gnu::noinline]] void* operator new(std::size_t size) {
  if (allocations_left != kNever && allocations_left-- == 0) {
    allocations_left = kNever;
    throw std::bad_alloc();
  }
  if (void* const memory = std::malloc(size > 0 ? size : 1)) return memory;
  throw std::bad_alloc();
}
// std::stable_sort asks for memory this way, and gives it back to the same delete.
[[gnu::noinline]] void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  return std::malloc(size > 0 ? size : 1);
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace {

using namespace plans;

constexpr Dtype kFloat = Dtype::kFloat32;

// The code of what `body` throws when its n-th allocation fails; nothing if it needs fewer.
template <typename Body>
std::optional<ErrorCode> failureAt(std::size_t number, Body&& body) {
  allocations_left = number;
  try {
    body();
    allocations_left = kNever;
    return std::nullopt;
  } catch (const std::exception& exception) {
    allocations_left = kNever;
    return snnjax::errorOf(exception).code();
  }
}

void runsAfterOneThatFailedAreRight() {
  Builder builder;
  const ValueId x = builder.parameter(kFloat, {4}), y = builder.parameter(kFloat, {4});
  builder.plan.main.results = {builder.binary(builder.plan.main, "add", x, y)};
  const auto system = plans::system();
  const auto executable = builder.build(system);
  std::size_t number = 0;
  for (bool fails = true; fails; ++number) {
    const float n = static_cast<float>(number);
    const auto a = plans::array<float>(system, kFloat, {4}, {n, 1, 2, 3});
    const auto b = plans::array<float>(system, kFloat, {4}, {n, n, n, n});
    const auto run = [&] { return executable->run({{a, b}}, {false, false}); };
    const auto code = failureAt(number, run);
    fails = code.has_value();
    CHECK(!fails || *code == ErrorCode::kResourceExhausted);
    const std::vector<float> expected = {n + n, n + 1, n + 2, n + 3};
    check::that(valuesOf(*run()[0][0]) == expected, "the next run is right", __FILE__, __LINE__,
                "another result after allocation " + std::to_string(number));
  }
  CHECK(number > 10);
}

// A destructor brings results to the host, and must not throw where there is no memory for them.
void programsAreDeletedWithoutMemory() {
  Builder builder;
  const ValueId x = builder.parameter(kFloat, {4});
  builder.plan.main.results = {builder.binary(builder.plan.main, "add", x, x)};
  const auto system = plans::system();
  std::size_t lost = 0;
  for (std::size_t number = 0, kept = 0; kept == 0; ++number) {
    auto executable = builder.build(system);
    const auto result = executable->run({{plans::array<float>(system, kFloat, {4}, {0, 1, 2, 3})}}, {false})[0][0];
    allocations_left = number;
    executable.reset();
    allocations_left = kNever;
    const std::string message = check::messageOf([&] { kept = valuesOf(*result) == std::vector<float>{0, 2, 4, 6}; });
    CHECK(kept == 1 || message.find("for which there was no memory when its program was deleted") != message.npos);
    lost += kept == 1 ? 0 : 1;
  }
  CHECK(lost > 0);
}

}  // namespace

int main() {
  for (const auto& test : {runsAfterOneThatFailedAreRight, programsAreDeletedWithoutMemory}) {
    const std::string error = check::messageOf(test);
    check::that(error.empty(), "no other exception", __FILE__, __LINE__, error);
  }
  return check::failures == 0 ? 0 : 1;
}
