// The modes in which a thread computes with floating-point numbers: how it rounds, and whether it takes subnormal
// numbers for 0. A thread inherits them from the one that starts it, and XLA's threads take subnormal numbers for 0.
#pragma once

#include <cfenv>

namespace snnjax {

// Within its scope a thread has these modes: those of FE_DFL_ENV round to nearest and keep subnormal numbers.
class FloatingPoint {
 public:
  explicit FloatingPoint(const std::fenv_t* modes) {
    std::fegetenv(&before_);
    std::fesetenv(modes);
  }
  ~FloatingPoint() { std::fesetenv(&before_); }
  FloatingPoint(const FloatingPoint&) = delete;
  FloatingPoint& operator=(const FloatingPoint&) = delete;

 private:
  std::fenv_t before_;
};

}  // namespace snnjax
