// The target of maximum pools of lists: which entries are the first of the largest in their windows.
#include <limits>

#include "connection.hpp"
#include "cpu/call.hpp"
#include "cpu/lists/marks.hpp"
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

// One thread's, for one row after another.
class Largest {
 public:
  explicit Largest(const Image& image)
      : image_(image),
        listed_(static_cast<std::size_t>(wordsOf(image.windows->numInputs()))),
        windows_(static_cast<std::size_t>(image.windows->numOutputs())) {}

  // `values` are those of all rows.
  void find(const ListSource& lists, const Numbers& values, Index row, std::uint8_t* is_largest) {
    list(lists, values, row);
    for (const Entry& entry : entries_) {
      Window& window = windows_[entry.window];
      if (window.row != row) window = {.row = row};
      window.listed += entry.is_first;
      if (entry.value < window.largest || (entry.value == window.largest && entry.id > window.first)) continue;
      if (entry.value != entry.value) continue;
      window.largest = entry.value;
      window.first = entry.id;
    }
    std::fill_n(is_largest, lists.capacity(), std::uint8_t{0});
    for (const Entry& entry : entries_) {
      const Window& window = windows_[entry.window];
      const bool is_beyond_others = window.largest >= 0.0F || window.listed == image_.pixels_of_window;
      is_largest[entry.slot] = entry.id == window.first && is_beyond_others ? 1 : 0;
    }
  }

 private:
  struct Entry {
    std::uint32_t slot, id, window, is_first;  // 0: an earlier entry has this id
    float value;                               // of all entries of this id
  };
  struct Window {
    Index row = -1;  // whose this is
    float largest = -std::numeric_limits<float>::infinity();
    std::uint32_t first = std::numeric_limits<std::uint32_t>::max();
    Index listed = 0;  // pixels; the others are 0
  };

  // The entries of a row that are in a window.
  void list(const ListSource& lists, const Numbers& values, Index row) {
    const Index capacity = lists.capacity();
    const auto room = static_cast<std::size_t>(capacity + kListSlack);
    ids_.resize(room);
    slots_.resize(room);
    values_.resize(room);
    values.read(row * capacity, capacity, values_.data());
    const std::uint32_t count = lists.listSlots(row, ids_.data(), slots_.data());
    entries_.resize(count);
    std::size_t entries = 0;
    std::fill(listed_.begin(), listed_.end(), std::uint64_t{0});
    bool is_repeated = false;
    for (std::uint32_t k = 0; k < count; ++k) {
      const std::uint32_t id = ids_[k], slot = slots_[k];
      const Index window = image_.windows->window(id);
      if (window < 0) continue;
      std::uint64_t& word = listed_[id / 64];
      const std::uint32_t is_first = (word >> (id % 64) & 1) == 0 ? 1 : 0;
      word |= std::uint64_t{1} << (id % 64);
      is_repeated |= is_first == 0;
      entries_[entries++] = {slot, id, static_cast<std::uint32_t>(window), is_first, values_[slot]};
    }
    entries_.resize(entries);
    if (is_repeated) addRepeated();
  }

  void addRepeated() {
    std::vector<float> sums(static_cast<std::size_t>(image_.windows->numInputs()));
    for (const Entry& entry : entries_) sums[entry.id] += entry.value;
    for (Entry& entry : entries_) entry.value = sums[entry.id];
  }

  const Image& image_;
  std::vector<std::uint64_t> listed_;  // a bit for each input
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
    std::vector<Largest> workers(static_cast<std::size_t>(call.threads.count()), Largest(call.numbers));
    call.threads.run((rows + kRowsPerTask - 1) / kRowsPerTask, [&](Index task, Index worker) {
      for (Index row = task * kRowsPerTask; row < std::min((task + 1) * kRowsPerTask, rows); ++row) {
        workers[static_cast<std::size_t>(worker)].find(lists, values, row, out + row * capacity);
      }
    });
  }
}

}  // namespace
}  // namespace snnjax::pool_spikes

SNNJAX_TARGET(snnjax_pool_spikes, "pool_spikes", snnjax::pool_spikes::findLargest);
