// Delays as whole steps and shares: whatever is given, none is beyond the longest one.
#include "cpu/delays/delays.hpp"

#include <cmath>
#include <limits>

#include "check.hpp"

namespace {

using snnjax::Delays;
using snnjax::Index;
using snnjax::SplitDelay;
using snnjax::splitDelay;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

void delaysAreSplitBetweenTwoSteps() {
  const SplitDelay delay = splitDelay(2.25F, 3);
  CHECK_EQUAL(delay.whole, Index{2});
  CHECK_EQUAL(delay.later, 0.25F);
}

void delaysOutOfRangeAreClipped() {
  for (const float below : {-kInfinity, -3.0F, -0.0F, std::nanf("")}) {
    CHECK_EQUAL(splitDelay(below, 3).whole, Index{0});
    CHECK_EQUAL(splitDelay(below, 3).later, 0.0F);
  }
  for (const float beyond : {3.0F, 3.5F, 1e30F, kInfinity}) {
    CHECK_EQUAL(splitDelay(beyond, 3).whole, Index{3});
    CHECK_EQUAL(splitDelay(beyond, 3).later, 0.0F);
  }
}

// From 2^24 on float32 does not hold every whole number: rounded up, the longest delay would be longer than the memory
// of what is under way, and 2^31 - 2 no int32.
void theLongestDelayIsExact() {
  for (const Index longest : {(Index{1} << 24) + 3, (Index{1} << 30) + 65, Index{INT32_MAX} - 1, Index{INT32_MAX}}) {
    const float rounded = static_cast<float>(longest);
    CHECK(static_cast<double>(rounded) > static_cast<double>(longest));
    for (const float delay : {rounded, kInfinity}) {
      CHECK_EQUAL(splitDelay(delay, longest).whole, longest);
      CHECK_EQUAL(splitDelay(delay, longest).later, 0.0F);
    }
    CHECK(splitDelay(std::nextafter(rounded, 0.0F), longest).whole < longest);
  }
}

void layersTakeTheLongestDelay() {
  const float given[] = {2147483648.0F, std::nanf(""), 1.5F};
  const Delays delays(INT32_MAX, given, 3);
  CHECK_EQUAL(delays.whole(0), Index{INT32_MAX} - 1);
  CHECK_EQUAL(delays.whole(1), Index{0});
  CHECK_EQUAL(delays.whole(2), Index{1});
  CHECK_EQUAL(delays.share(2), 0.5F);
  CHECK_EQUAL(delays.share(5), 0.5F);
}

}  // namespace

int main() {
  delaysAreSplitBetweenTwoSteps();
  delaysOutOfRangeAreClipped();
  theLongestDelayIsExact();
  layersTakeTheLongestDelay();
  return check::failures;
}
