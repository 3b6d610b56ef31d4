// The two steps of a D2Q9 lattice Boltzmann method on the cells of one worker: streaming from the neighbouring cells,
// and relaxation towards the local equilibrium (BGK).
#include <poplar/Vertex.hpp>

using namespace poplar;

namespace {

constexpr int kSpeeds = 9;
constexpr float kX[kSpeeds] = {0, 1, 0, -1, 0, 1, -1, -1, 1};
constexpr float kY[kSpeeds] = {0, 0, 1, 0, -1, 1, 1, -1, -1};
constexpr float kWeights[kSpeeds] = {4.0f / 9,  1.0f / 9,  1.0f / 9,  1.0f / 9, 1.0f / 9,
                                     1.0f / 36, 1.0f / 36, 1.0f / 36, 1.0f / 36};

}  // namespace

class Stream : public Vertex {
 public:
  Vector<Input<Vector<float>>> from;  // for each speed, of the cells that the particles come from
  Output<Vector<float>> cells;        // {cells, 9}

  bool compute() {
    for (unsigned speed = 0; speed < kSpeeds; ++speed) {
      for (unsigned cell = 0; cell < from[speed].size(); ++cell) cells[cell * kSpeeds + speed] = from[speed][cell];
    }
    return true;
  }
};

class Collide : public Vertex {
 public:
  InOut<Vector<float>> cells;  // {cells, 9}
  Output<float> mass;
  float omega;

  bool compute() {
    *mass = 0;
    for (unsigned first = 0; first < cells.size(); first += kSpeeds) {
      float density = 0, x = 0, y = 0;
      for (int i = 0; i < kSpeeds; ++i) {
        density += cells[first + i];
        x += kX[i] * cells[first + i];
        y += kY[i] * cells[first + i];
      }
      x /= density;
      y /= density;
      for (int i = 0; i < kSpeeds; ++i) {
        const float along = 3 * (kX[i] * x + kY[i] * y);
        const float rest = density * kWeights[i] * (1 + along + along * along / 2 - 1.5f * (x * x + y * y));
        cells[first + i] += omega * (rest - cells[first + i]);
      }
      *mass += density;
    }
    return true;
  }
};
