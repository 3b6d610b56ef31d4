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
    const Index capacity = lists.capacity();
    list(lists, row);
    values_.resize(static_cast<std::size_t>(capacity));
    values.read(row * capacity, capacity, values_.data());
    each([&](Index slot, Index id, Window& window) {
      Input& input = inputs_[static_cast<std::size_t>(id)];
      window.listed += input.is_listed ? 0 : 1;
      input.is_listed = true;
      input.sum += values_[static_cast<std::size_t>(slot)];  // an id may be listed twice
    });
    each([&](Index, Index id, Window& window) {
      const float sum = inputs_[static_cast<std::size_t>(id)].sum;
      if (sum < window.largest || (sum == window.largest && id > window.first)) return;
      if (sum == sum) window = {sum, static_cast<std::int32_t>(id), window.listed};
    });
    std::fill_n(is_largest, capacity, std::uint8_t{0});
    each([&](Index slot, Index id, const Window& window) {
      const bool is_beyond_others = window.largest >= 0.0F || window.listed == image_.pixels_of_window;
      is_largest[slot] = id == window.first && is_beyond_others ? 1 : 0;
    });
    each([&](Index, Index id, Window& window) {
      inputs_[static_cast<std::size_t>(id)] = {};
      window = {};
    });
  }

 private:
  struct Entry {
    std::uint32_t slot, id, window;
  };
  struct Input {
    float sum = 0.0F;
    bool is_listed = false;
  };
  struct Window {
    float largest = -std::numeric_limits<float>::infinity();
    std::int32_t first = std::numeric_limits<std::int32_t>::max();
    std::int32_t listed = 0;  // pixels; the others are 0
  };

  // The entries of a row that are in a window.
  void list(const ListSource& lists, Index row) {
    const auto room = static_cast<std::size_t>(lists.capacity() + kListSlack);
    ids_.resize(room);
    slots_.resize(room);
    entries_.clear();
    const std::uint32_t count = lists.listSlots(row, ids_.data(), slots_.data());
    for (std::uint32_t k = 0; k < count; ++k) {
      const Index window = image_.windows->window(ids_[k]);
      if (window >= 0) entries_.push_back({slots_[k], ids_[k], static_cast<std::uint32_t>(window)});
    }
  }

  // Calls visit(slot, id, window) for them.
  template <typename Visit>
  void each(Visit visit) {
    for (const Entry& entry : entries_) visit(Index{entry.slot}, Index{entry.id}, windows_[entry.window]);
  }

  const Image& image_;
  std::vector<Input> inputs_;
  std::vector<Window> windows_;
  std::vector<float> values_;
  std::vector<std::uint32_t> ids_, slots_;
  std::vector<Entry> entries_;
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
