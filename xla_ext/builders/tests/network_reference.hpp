// `lif_network` in scalar C++ on dense arrays: the equations of snnjax/ops/_lif_network/layer.py, sample by sample.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "../network_plan.hpp"

namespace network_test {

using snnjax::Reset;
using snnjax::builders::Inputs;
using snnjax::builders::NetworkOptions;
using snnjax::builders::NeuronOptions;

using Row = std::vector<float>;

// Parameters and inputs in the user's order.
struct Network {
  NetworkOptions options;
  std::vector<Row> weights;    // of each layer and of the readout: [inputs, neurons]
  std::vector<Row> recurrent;  // [neurons, neurons] of recurrent layers, else empty
  std::vector<Row> bias;       // [neurons]
  float decay = 0.5F, gain = 1.0F, threshold = 1.0F, second_threshold = 0.5F;
  std::vector<std::int32_t> ids;       // [num_steps, batch, event_capacity], empty of dense inputs
  Row values;                          // likewise, or dense inputs [num_steps, batch, num_inputs]
  std::vector<std::uint32_t> lengths;  // [batch]

  const NeuronOptions& neuron() const { return options.layers.front().neuron; }  // of all layers
  std::size_t count() const { return weights.size(); }
  bool isLeaky(std::size_t l) const { return l == options.layers.size(); }
  unsigned neurons(std::size_t l) const { return isLeaky(l) ? options.outputs : options.layers[l].neurons; }
  unsigned inputs(std::size_t l) const { return l == 0 ? options.num_inputs : options.layers[l - 1].neurons; }
  bool isRecurrent(std::size_t l) const { return !recurrent[l].empty(); }
  // A spiking output is listed only if it is recurrent.
  bool isListed(std::size_t l) const { return l + 1 < count() || isRecurrent(l); }
};

// A network whose weights are multiples of 1/8: sums of few of them are exact, in any order.
inline Network randomNetwork(const NetworkOptions& options, unsigned seed) {
  std::mt19937 random(seed);
  Network network;
  network.options = options;
  const std::size_t count = options.layers.size() + (options.outputs > 0 ? 1 : 0);
  for (std::size_t l = 0; l < count; ++l) {
    network.weights.emplace_back();
    network.bias.emplace_back();
    const unsigned neurons = l < options.layers.size() ? options.layers[l].neurons : options.outputs;
    const unsigned inputs = l == 0 ? options.num_inputs : options.layers[l - 1].neurons;
    const auto eighths = [&](int low, int high) {
      return static_cast<float>(std::uniform_int_distribution<int>(low, high)(random)) / 8.0F;
    };
    for (unsigned i = 0; i < inputs * neurons; ++i) network.weights.back().push_back(eighths(-4, 8));
    for (unsigned j = 0; j < neurons; ++j) network.bias.back().push_back(eighths(-1, 1));
    network.recurrent.emplace_back();
    if (l == options.layers.size() || !options.layers[l].recurrent) continue;
    for (unsigned i = 0; i < neurons * neurons; ++i) network.recurrent.back().push_back(eighths(-4, 4));
  }
  std::uniform_int_distribution<std::int32_t> id(-1, static_cast<std::int32_t>(options.num_inputs) + 1);
  const std::size_t slots = std::size_t{options.num_steps} * options.batch * options.event_capacity;
  const bool dense = options.inputs == Inputs::Dense;
  for (std::size_t i = 0; !dense && i < slots; ++i) network.ids.push_back(id(random));
  std::uniform_int_distribution<int> eighths(-4, 12);
  const std::size_t values = dense ? std::size_t{options.num_steps} * options.batch * options.num_inputs : slots;
  for (std::size_t i = 0; i < values; ++i) {
    network.values.push_back(i % 2 == 0 ? 0.0F : static_cast<float>(eighths(random)) / 8.0F);
  }
  std::uniform_int_distribution<std::uint32_t> length(options.num_steps / 2, options.num_steps);
  for (unsigned b = 0; b < options.batch; ++b) network.lengths.push_back(length(random));
  return network;
}

// Arrays [num_steps, batch, neurons] of each layer.
struct Ran {
  std::vector<Row> v, listed, fired;  // membranes, 1 where listed, 1 where a listed neuron spikes
};

// The candidates of one kind that stay: the largest membranes, ties by hash.
inline void keepLargest(const float* v, std::vector<unsigned> ids, std::size_t slots, float* listed) {
  std::sort(ids.begin(), ids.end(),
            [&](unsigned a, unsigned b) { return v[a] != v[b] ? v[a] > v[b] : snnjax::hashOf(a) < snnjax::hashOf(b); });
  for (std::size_t k = 0; k < std::min(slots, ids.size()); ++k) listed[ids[k]] = 1.0F;
}

inline void select(const Network& network, std::size_t l, const float* v, float* listed, float* fired) {
  const unsigned neurons = network.neurons(l);
  const bool is_output = l + 1 == network.count();  // which is fully listed
  const unsigned slots = network.options.layers[l].capacity.value_or(neurons);
  const std::size_t capacity = is_output ? neurons : std::min(slots, neurons);
  const float second_threshold = is_output ? -std::numeric_limits<float>::infinity() : network.second_threshold;
  std::vector<unsigned> spikes, near;
  for (unsigned j = 0; j < neurons; ++j) {
    if (v[j] > network.threshold) spikes.push_back(j);
    if (v[j] > second_threshold && !(v[j] > network.threshold)) near.push_back(j);
  }
  keepLargest(v, spikes, capacity, listed);
  keepLargest(v, near, capacity - std::min(capacity, spikes.size()), listed);
  for (unsigned j = 0; j < neurons; ++j) fired[j] = listed[j] * (v[j] > network.threshold ? 1.0F : 0.0F);
}

inline float afterReset(const Network& network, bool leaky, float v) {
  const bool fires = v > network.threshold;
  if (leaky || !fires || network.neuron().reset == Reset::None) return v;
  return network.neuron().reset == Reset::Subtract ? v - network.threshold : 0.0F;
}

// The inputs of layer `l` at (t, b), dense.
inline Row inputsOf(const Network& network, const Ran& ran, std::size_t l, std::size_t row) {
  const unsigned inputs = network.inputs(l);
  if (l > 0) {
    const float* const from = &ran.fired[l - 1][row * inputs];
    return Row(from, from + inputs);
  }
  if (network.options.inputs == Inputs::Dense) {
    const float* const from = &network.values[row * inputs];
    return Row(from, from + inputs);
  }
  Row dense(inputs, 0.0F);
  for (unsigned k = 0; k < network.options.event_capacity; ++k) {
    const std::size_t slot = row * network.options.event_capacity + k;
    const std::int32_t id = network.ids[slot];
    const float value = network.options.inputs == Inputs::Events ? network.values[slot] : 1.0F;
    if (id >= 0 && id < static_cast<std::int32_t>(inputs)) dense[static_cast<unsigned>(id)] += value;
  }
  return dense;
}

// The previous step's own spikes that layer `l` reads at row (t, b): none in the first step or in other layers.
inline Row ownSpikes(const Network& network, const Ran& ran, std::size_t l, std::size_t row) {
  const std::size_t batch = network.options.batch, neurons = network.neurons(l);
  if (!network.isRecurrent(l) || row < batch) return {};
  const float* const from = &ran.fired[l][(row - batch) * neurons];
  return Row(from, from + neurons);
}

inline Ran runForward(const Network& network) {
  const unsigned steps = network.options.num_steps, batch = network.options.batch;
  Ran ran;
  for (std::size_t l = 0; l < network.count(); ++l) {
    const std::size_t neurons = network.neurons(l);
    for (std::vector<Row>* each : {&ran.v, &ran.listed, &ran.fired}) each->emplace_back(steps * batch * neurons, 0.0F);
    for (std::size_t t = 0; t < steps; ++t) {
      for (std::size_t b = 0; b < batch; ++b) {
        const std::size_t row = t * batch + b;
        float* const v = &ran.v[l][row * neurons];
        const Row x = inputsOf(network, ran, l, row), own = ownSpikes(network, ran, l, row);
        for (std::size_t j = 0; j < neurons; ++j) {
          const float before = t == 0 ? 0.0F : ran.v[l][(row - batch) * neurons + j];
          float current = network.bias[l][j];
          for (std::size_t i = 0; i < x.size(); ++i) current += x[i] * network.weights[l][i * neurons + j];
          for (std::size_t i = 0; i < own.size(); ++i) current += own[i] * network.recurrent[l][i * neurons + j];
          v[j] = t >= network.lengths[b]
                     ? before
                     : network.decay * afterReset(network, network.isLeaky(l), before) + network.gain * current;
        }
        if (!network.isLeaky(l) && network.isListed(l) && t < network.lengths[b]) {
          select(network, l, v, &ran.listed[l][row * neurons], &ran.fired[l][row * neurons]);
        }
      }
    }
  }
  return ran;
}

inline float superSpike(float x, float slope) {
  const float root = 1.0F + slope * std::abs(x);
  return 1.0F / (root * root);
}

// The gradient of the current of layer `l`, [num_steps, batch, neurons], from that of its spikes or readout `g`.
inline Row currentGradient(const Network& network, const Ran& ran, std::size_t l, Row g) {
  const std::size_t steps = network.options.num_steps, batch = network.options.batch, neurons = network.neurons(l);
  Row g_current(steps * batch * neurons, 0.0F), g_us(batch * neurons, 0.0F);
  for (std::size_t t = steps; t-- > 0;) {
    for (std::size_t b = 0; b < batch; ++b) {
      for (std::size_t j = 0; j < neurons; ++j) {
        const std::size_t i = (t * batch + b) * neurons + j;
        float& g_u = g_us[b * neurons + j];
        if (t >= network.lengths[b]) {  // padded steps of a readout repeat its last membrane; others fire nothing
          g_u += network.isLeaky(l) ? g[i] : 0.0F;
          continue;
        }
        const float v = ran.v[l][i];
        const bool takes = network.isLeaky(l) || !network.isListed(l) || ran.listed[l][i] > 0;
        const float slope = network.isLeaky(l) ? 1.0F : superSpike(v - network.threshold, network.neuron().slope);
        const bool zeroed = network.neuron().reset == Reset::Zero && !network.isLeaky(l) && v > network.threshold;
        const float g_v = (zeroed ? 0.0F : g_u) + (takes ? g[i] * slope : 0.0F);
        g_u = network.decay * g_v;
        g_current[i] = network.gain * g_v;
      }
      if (!network.isRecurrent(l) || t == 0) continue;
      for (std::size_t i = 0; i < neurons; ++i) {  // own spikes of the step before
        for (std::size_t j = 0; j < neurons; ++j) {
          g[((t - 1) * batch + b) * neurons + i] +=
              network.recurrent[l][i * neurons + j] * g_current[(t * batch + b) * neurons + j];
        }
      }
    }
  }
  return g_current;
}

struct Gradients {
  std::vector<Row> weights, recurrent, bias;  // of each layer
};

// x^T g, summed over rows, into `sum` [inputs, neurons].
inline void addOuter(const Row& x, const float* g, std::size_t neurons, Row& sum) {
  for (std::size_t i = 0; i < x.size(); ++i) {
    for (std::size_t j = 0; j < neurons; ++j) sum[i * neurons + j] += x[i] * g[j];
  }
}

// For the gradient `g` of the output [num_steps, batch, outputs]; the reset detached.
inline Gradients runBackward(const Network& network, const Ran& ran, Row g) {
  const std::size_t rows = std::size_t{network.options.num_steps} * network.options.batch;
  Gradients gradients;
  gradients.weights.resize(network.count());
  gradients.recurrent.resize(network.count());
  gradients.bias.resize(network.count());
  for (std::size_t l = network.count(); l-- > 0;) {
    const std::size_t neurons = network.neurons(l), inputs = network.inputs(l);
    const Row g_current = currentGradient(network, ran, l, g);
    gradients.weights[l].assign(inputs * neurons, 0.0F);
    gradients.recurrent[l].assign(network.recurrent[l].size(), 0.0F);
    gradients.bias[l].assign(neurons, 0.0F);
    Row g_below(rows * inputs, 0.0F);
    for (std::size_t row = 0; row < rows; ++row) {
      const float* const g_row = &g_current[row * neurons];
      addOuter(inputsOf(network, ran, l, row), g_row, neurons, gradients.weights[l]);
      addOuter(ownSpikes(network, ran, l, row), g_row, neurons, gradients.recurrent[l]);
      addOuter(Row{1.0F}, g_row, neurons, gradients.bias[l]);
      for (std::size_t i = 0; i < inputs; ++i) {
        for (std::size_t j = 0; j < neurons; ++j) {
          g_below[row * inputs + i] += network.weights[l][i * neurons + j] * g_row[j];
        }
      }
    }
    g = std::move(g_below);
  }
  return gradients;
}

}  // namespace network_test
