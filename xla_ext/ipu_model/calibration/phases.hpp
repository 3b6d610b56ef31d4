// A program as a list of phases: what the busiest tile of each kind of tile does, added up.
#pragma once

#include <cstdint>
#include <vector>

#include "costs/costs.hpp"

namespace ipu_model::calibration {

class Phases {
 public:
  explicit Phases(const Chip& chip) : chip_(chip) {}

  // Words and runs that a tile of one kind sends and receives; the phase waits for the busiest kind. With the sync.
  struct Load {
    double sent = 0, sent_in = 0, received = 0, received_in = 0;
  };
  void exchange(const std::vector<Load>& kinds);
  // `count` vertices of `slots` issue slots on a tile of each kind.
  struct Vertices {
    double count = 0, slots = 0;
  };
  void compute(const std::vector<Vertices>& kinds);
  // A MultiVertex whose workers all issue `slots`.
  void multi(double slots, double supervisor = 0);
  void add(double cycles) { cycles_ += cycles; }

  [[nodiscard]] double cycles() const { return cycles_; }

 private:
  const Chip& chip_;
  double cycles_ = 0;
};

}  // namespace ipu_model::calibration
