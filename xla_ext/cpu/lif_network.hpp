// What the two targets of `lif_network` have in common: their attributes and operands.
#pragma once

#include "ffi.hpp"
#include "lif_layer.hpp"

namespace snnjax {

// The static part of a layer, as the attribute `layers` holds it: kFields numbers a layer.
struct LayerFields {
  static constexpr std::size_t kFields = 10;
  bool has_bias, is_recurrent;
  Reset reset;
  bool detach_reset;
  Surrogate surrogate;
  Index capacity;             // -1: none
  std::int64_t second_state;  // a bit for each constant of a second state that is there, by `Coupling`; 0: none
  bool records_w, records_current, records_spikes;

  bool hasSecondState() const { return second_state != 0; }
  bool has(std::size_t coupling) const { return ((second_state >> coupling) & 1) != 0; }
};

// The static part of a network. `has_lists`: the inputs are lists of spikes.
struct NetworkFields {
  std::vector<LayerFields> layers;
  std::vector<float> slopes;
  bool has_lists, has_readout, readout_has_bias, has_lengths;

  static NetworkFields read(ffi::Dictionary attributes);
};

bool booleanOf(ffi::Dictionary attributes, const char* name);

// The operands of a network.
class Network {
 public:
  Network(const NetworkFields& fields, Arrays& operands);

  const NetworkFields& fields() const { return fields_; }
  Index steps() const { return steps_; }
  Index batch() const { return batch_; }
  Index inputs() const { return inputs_; }
  Index inputWidth() const { return fields_.has_lists ? capacity_ : inputs_; }  // of their array
  Index neurons(std::size_t layer) const { return layers_[layer].neurons; }
  Index outputs() const { return readout_.neurons; }
  std::size_t size() const { return layers_.size(); }
  ffi::DataType type() const { return layers_[0].weights.type(); }

  // Of one group of operands:
  Layer layer(std::size_t index, Index group) const;
  Layer readout(Index group) const;
  std::vector<std::int32_t> ends(Index group) const;
  std::unique_ptr<RowSource> source(Index group) const;
  Numbers firstV(std::size_t layer, Index group) const { return layers_[layer].first_v.numbers(group); }
  Numbers firstW(std::size_t layer, Index group) const { return layers_[layer].first_w.numbers(group); }
  Numbers firstSpikes(std::size_t layer, Index group) const { return layers_[layer].first_spikes.numbers(group); }
  Numbers firstReadout(Index group) const { return readout_.first_v.numbers(group); }

 private:
  struct Constant {
    Array array;
    Index count = 0;  // 1, or one a neuron

    ConstantNumbers numbers(Index group) const { return {array.numbers(group), count}; }
  };
  struct LayerArrays {
    Index inputs = 0, neurons = 0;
    Array weights, bias, recurrent, first_v, first_w, first_spikes;
    Constant decay, threshold, gain, second_threshold;
    std::array<Constant, kNumCouplings> couplings;
  };

  static Constant takeConstant(Arrays& operands, const char* name, Index neurons);
  void takeLinear(Arrays& operands, LayerArrays& layer, Index inputs, bool has_bias, const Arrays::Types& types);
  LayerConstants constants(const LayerArrays& layer, Index group) const;

  NetworkFields fields_;
  Index steps_, batch_, inputs_, capacity_ = 0;
  Array dense_inputs_, ids_, values_, lengths_;
  std::vector<LayerArrays> layers_;
  LayerArrays readout_;
};

}  // namespace snnjax
