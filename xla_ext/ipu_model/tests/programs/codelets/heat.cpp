// One explicit step of the heat equation on the rows of a tile; the rows above and below come from its neighbours.
#include <poplar/Vertex.hpp>

using namespace poplar;

class [[poplar::constraint("elem(*in) != elem(*out)")]] HeatStep : public MultiVertex {
 public:
  Input<Vector<float, VectorLayout::ONE_PTR, 8>> in;  // {rows, columns}
  Input<Vector<float>> above, below;                  // {columns}, empty at the plate's edge
  Output<Vector<float, VectorLayout::ONE_PTR, 8>> out;
  const unsigned rows;
  const unsigned columns;
  const float alpha;

  bool compute(unsigned worker) {
    for (unsigned y = worker; y < rows; y += MultiVertex::numWorkers()) {
      const float* const here = &in[y * columns];
      const float* const up = y > 0 ? here - columns : above.size() > 0 ? &above[0] : nullptr;
      const float* const down = y + 1 < rows ? here + columns : below.size() > 0 ? &below[0] : nullptr;
      for (unsigned x = 0; x < columns; ++x) {
        const bool inside = up != nullptr && down != nullptr && x > 0 && x + 1 < columns;
        const float flow = inside ? up[x] + down[x] + here[x - 1] + here[x + 1] - 4 * here[x] : 0.0f;
        out[y * columns + x] = here[x] + alpha * flow;
      }
    }
    return true;
  }
};
