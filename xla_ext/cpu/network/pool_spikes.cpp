// The target of maximum pools of lists: which entries are the first of the largest in their windows.
#include <limits>

#include "connection.hpp"
#include "cpu/call.hpp"
#include "cpu/lists/spike_rows.hpp"

namespace snnjax::pool_spikes {
namespace {

using schema::Axis;

struct Image : NoLayers {
  explicit Image(const Attributes& attributes) : Image(WindowNumbers::read(attributes)) {}

  std::shared_ptr<const Windows> windows;
  Index pixels_of_window;

 private:
  explicit Image(const WindowNumbers& n) : pixels_of_window(n.window_height * n.window_width) {
    const PoolingShape shape{.height = n.height,
                             .width = n.width,
                             .channels = n.channels,
                             .window_height = n.window_height,
                             .window_width = n.window_width,
                             .is_mean = false};
    if (!shape.isValid()) throw misfit("pool_spikes", "windows", "be those of an image", "others");
    windows = std::make_shared<const Windows>(shape);
  }
};

// One thread's; what a row leaves is cleared after it.
class Largest {
 public:
  explicit Largest(const Image& image)
      : image_(image),
        inputs_(static_cast<std::size_t>(image.windows->numInputs())),
        windows_(static_cast<std::size_t>(image.windows->numOutputs())) {}

  // `values` are those of all rows.
  void find(const ListSource& lists, const Numbers& values, Index row, std::uint8_t* is_largest) {
    const Index slots = lists.capacity();
    values_.resize(static_cast<std::size_t>(slots));
    values.read(row * slots, slots, values_.data());
    each(lists, row, [&](Index slot, Index id, Window& window) {
      Input& input = inputs_[static_cast<std::size_t>(id)];
      window.listed += input.is_listed ? 0 : 1;
      input.is_listed = true;
      input.sum += values_[static_cast<std::size_t>(slot)];  // an id may be listed twice
    });
    each(lists, row, [&](Index, Index id, Window& window) {
      const float sum = inputs_[static_cast<std::size_t>(id)].sum;
      if (sum < window.largest || (sum == window.largest && id > window.first)) return;
      if (sum == sum) window = {sum, static_cast<std::int32_t>(id), window.listed};
    });
    std::fill_n(is_largest, slots, std::uint8_t{0});
    each(lists, row, [&](Index slot, Index id, const Window& window) {
      const bool is_beyond_others = window.largest >= 0.0F || window.listed == image_.pixels_of_window;
      is_largest[slot] = id == window.first && is_beyond_others ? 1 : 0;
    });
    each(lists, row, [&](Index, Index id, Window& window) {
      inputs_[static_cast<std::size_t>(id)] = {};
      window = {};
    });
  }

 private:
  struct Input {
    float sum = 0.0F;
    bool is_listed = false;
  };
  struct Window {
    float largest = -std::numeric_limits<float>::infinity();
    std::int32_t first = std::numeric_limits<std::int32_t>::max();
    std::int32_t listed = 0;  // pixels; the others are 0
  };

  // Calls visit(slot, id, window) for the entries that are in a window.
  template <typename Visit>
  void each(const ListSource& lists, Index row, Visit visit) {
    for (Index slot = 0; slot < lists.capacity(); ++slot) {
      const Index id = lists.idAt(row, slot);
      const Index window = id < 0 ? -1 : image_.windows->window(id);
      if (window >= 0) visit(slot, id, windows_[static_cast<std::size_t>(window)]);
    }
  }

  const Image& image_;
  std::vector<Input> inputs_;
  std::vector<Window> windows_;
  std::vector<float> values_;
};

void findLargest(Call<Operands<Operand>, Results<Result>, Image>& call) {
  const schema::Lengths lengths = call.check();
  const Index rows = lengths[Axis::kRows], capacity = lengths[Axis::kCapacity];
  constexpr Index kRowsPerTask = 8;
  for (Index group = 0; group < call.groups(); ++group) {
    const Operand& ids = call.from.ids;
    const Numbers values = call.from.values.numbers(group);
    const ListSource lists(ids.at(group), ids.type() == ffi::U16, values, capacity, call.numbers.windows->numInputs());
    auto* const out = call.to.is_largest.at<std::uint8_t>(group);
    call.threads.run((rows + kRowsPerTask - 1) / kRowsPerTask, [&](Index task, Index) {
      Largest largest(call.numbers);
      for (Index row = task * kRowsPerTask; row < std::min((task + 1) * kRowsPerTask, rows); ++row) {
        largest.find(lists, values, row, out + row * capacity);
      }
    });
  }
}

}  // namespace
}  // namespace snnjax::pool_spikes

SNNJAX_TARGET(snnjax_pool_spikes, "pool_spikes", snnjax::pool_spikes::findLargest);
