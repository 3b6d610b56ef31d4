// One update of Adam (Kingma and Ba 2015, arXiv:1412.6980) as optax.adam makes it, all in one pass over the tile.
#include "fields.hpp"
#include "numbers.hpp"
#include "workers.hpp"

namespace snnjax {

inline float squareRoot(float x) { return std::sqrt(x); }
#if defined(__IPU__) || defined(SNNJAX_VECTOR_FORM)
inline float2 squareRoot(float2 x) { return float2{std::sqrt(x[0]), std::sqrt(x[1])}; }
#endif

// m = beta1 m + (1 - beta1) g,  v = beta2 v + (1 - beta2) g^2, weights -= learning_rate * m / (1 - beta1^k) / (sqrt(v
// / (1 - beta2^k)) + epsilon) in update k = 1, 2, ...
template <class W>
class Adam : public poplar::MultiVertex {
 public:
  InOut<W> weights;         // [n]
  InOut<float> g;           // [n], gradient; 0 afterwards, ready to be summed into again
  InOut<float> m, v;        // [n], the moments
  In<float> learning_rate;  // [1]
  InOut<float> powers;      // [6, 2], beta1^k and beta2^k: one pair a worker, so that none waits for another; first 1
  unsigned n;
  float beta1, beta2, epsilon;

  bool compute(unsigned worker) {
    float* const own_powers = &powers[2 * worker];
    own_powers[0] *= beta1;
    own_powers[1] *= beta2;
    const float to_mean = 1.0f / (1.0f - own_powers[0]), to_square = 1.0f / (1.0f - own_powers[1]);
    const Range own = shareOf(n, worker, 2);
    unsigned i = own.first;
#if defined(__IPU__) || defined(SNNJAX_VECTOR_FORM)
    for (; i + 2 <= own.last; i += 2) update(i, Numbers<float2>{}, to_mean, to_square);
#endif
    for (; i < own.last; ++i) update(i, Numbers<float>{}, to_mean, to_square);
    return true;
  }

 private:
  template <class Of>
  void update(unsigned i, Of, float to_mean, float to_square) {
    const auto gradient = Of::load(&g[i]);
    const auto mean = beta1 * Of::load(&m[i]) + (1.0f - beta1) * gradient;
    const auto square = beta2 * Of::load(&v[i]) + (1.0f - beta2) * (gradient * gradient);
    Of::store(&m[i], mean);
    Of::store(&v[i], square);
    Of::store(&g[i], Of::fill(0.0f));
    const auto step = (to_mean * mean) / (squareRoot(to_square * square) + epsilon);
    Of::store(&weights[i], Of::load(&weights[i]) - learning_rate[0] * step);
  }
};

template class Adam<float>;
template class Adam<half>;

}  // namespace snnjax
