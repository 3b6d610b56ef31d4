// Memory for lists one after another, whose lengths are known only when each is made.
#pragma once

#include <algorithm>
#include <vector>

#include "cpu/memory.hpp"

namespace snnjax {

// Blocks that are filled with successive lists; what has been used stays where it is.
template <typename T>
class Blocks {
 public:
  // For this many entries more.
  T* room(Index count) {
    if (count > left_) {
      left_ = std::min(kMostLists * count, std::max(count, kUsual));
      all_.emplace_back(left_);
      next_ = all_.back().data();
    }
    return next_;
  }
  void use(Index count) { next_ += count, left_ -= count; }
  // A copy of a list.
  const T* keep(const T* list, Index count) {
    T* const to = std::copy_n(list, count, room(count)) - count;
    use(count);
    return to;
  }

 private:
  static constexpr Index kUsual = Index{1} << 13;  // entries
  static constexpr Index kMostLists = 64;          // of one length in a block: few lists need no more

  std::vector<Borrowed<T>> all_;
  T* next_ = nullptr;
  Index left_ = 0;
};

}  // namespace snnjax
