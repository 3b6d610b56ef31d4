// How the six workers share the gradient of a matrix: its pairs of columns, and its rows where pairs are few. Plain
// C++11, for codelets and the builders that choose how many columns a tile has.
#pragma once

namespace snnjax {

// Workers on different pairs; each has six / this many beside it on the same pairs, with other rows. Those that share
// rows search their first entry in each list: counted as a quarter more work.
constexpr unsigned workersOnPairs(unsigned pairs) {
  unsigned best = 6, least = (pairs + 5) / 6 * 6 * 4;
  for (unsigned parts : {3U, 2U, 1U}) {
    const unsigned work = (pairs + parts - 1) / parts * parts * 5;
    if (work < least) {
      best = parts;
      least = work;
    }
  }
  return best;
}

}  // namespace snnjax
