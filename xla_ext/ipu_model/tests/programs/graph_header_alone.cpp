// A program that includes one header of Poplar and takes the rest from it, as many do.
#include <poplar/Graph.hpp>

int main() {
  const int numbers[] = {1, 2, 3};
  char copy[sizeof numbers];
  std::memcpy(copy, numbers, sizeof copy);
  assert(std::accumulate(numbers, numbers + 3, 0) == 6);
  const poplar::program::Sequence nothing;
#if __cplusplus >= 201703L
  const std::optional<int> none;
  if (none) return 1;
#endif
  return nothing.isEmpty() && std::memcmp(copy, numbers, sizeof copy) == 0 ? 0 : 1;
}
