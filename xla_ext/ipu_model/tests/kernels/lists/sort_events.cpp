// Events of a user as records, against a stable sort, and gradients of their values on the way back.
#include <numeric>

#include "kernels/alone.hpp"
#include "kernels/lists/lists.hpp"

namespace {

using kernels::Alone;
using kernels::Draw;
using kernels::kHeader;

constexpr unsigned kInputs = 9;

struct Shape {
  unsigned rows, capacity;
  unsigned stride() const { return kHeader + (capacity + 3) / 4 * 4; }
};

// The slots of a row that name something, in the order of their ids, those of value 0 behind the others.
template <typename Id>
std::vector<unsigned> order(const std::vector<Id>& ids, const std::vector<float>& values, unsigned row,
                            unsigned capacity) {
  std::vector<unsigned> slots(capacity);
  std::iota(slots.begin(), slots.end(), 0U);
  const auto id = [&](unsigned k) { return static_cast<unsigned>(ids[row * capacity + k]); };
  std::erase_if(slots, [&](unsigned k) { return id(k) >= kInputs; });
  std::ranges::stable_sort(slots, {}, [&](unsigned k) { return std::pair(values[row * capacity + k] == 0, id(k)); });
  return slots;
}

template <typename Id>
void testSort(const ipu_model::CodeletLibrary& library, const std::string& ids_type, const Shape& shape, bool valued,
              std::uint32_t seed) {
  Draw draw(seed);
  std::vector<Id> ids(shape.rows * shape.capacity);
  for (Id& id : ids) id = static_cast<Id>(draw.below(12) == 0 ? -1 : static_cast<int>(draw.below(kInputs + 3)));
  std::vector<float> values = draw.row(ids.size());
  for (unsigned row = 0; row < shape.rows; ++row) {  // every other one is sorted
    const auto first = ids.begin() + row * shape.capacity;
    if (row % 2 == seed % 2)
      std::sort(first, first + shape.capacity, [](Id a, Id b) { return unsigned(a) < unsigned(b); });
  }
  if (!valued) std::ranges::fill(values, 1.0f);
  const std::string types = ids_type + (valued ? ",true>" : ",false>");
  Alone check(library, "snnjax::CheckEvents<" + types);
  check.edge("ids", ids).edge("sorted", std::vector<unsigned>(6 * shape.rows, 77));
  if (valued) check.edge("values", values);
  check.state("rows", shape.rows).state("capacity", shape.capacity).state("num_inputs", kInputs).run(true);
  Alone vertex(library, "snnjax::SortEvents<" + types);
  vertex.edge("in_order", check.get<unsigned>("sorted"))
      .edge("ids", ids)
      .edge("lists", std::vector<unsigned short>(shape.rows * shape.stride(), 77));
  if (valued) {
    vertex.edge("values", values).edge("sorted", std::vector<float>(ids.size(), 7));
    vertex.edge("slots", std::vector<unsigned>(ids.size(), 77));
  }
  vertex.state("rows", shape.rows).state("capacity", shape.capacity).state("stride", shape.stride());
  vertex.state("num_inputs", kInputs).run(seed % 2 == 1);

  const auto made = vertex.get<unsigned short>("lists");
  std::vector<unsigned short> lists(shape.rows * shape.stride(), 77);
  std::vector<float> sorted(ids.size(), 7);
  std::vector<unsigned> slots(ids.size(), 77);
  for (unsigned row = 0; row < shape.rows; ++row) {
    const std::vector<unsigned> expected = order(ids, values, row, shape.capacity);
    unsigned short* const record = &lists[row * shape.stride()];
    const auto count = static_cast<unsigned short>(expected.size());
    record[0] = record[1] = record[2] = count;
    for (unsigned k = 0; k < expected.size(); ++k) {
      const unsigned from = row * shape.capacity + expected[k];
      record[kHeader + k] = static_cast<unsigned short>(ids[from]);
      sorted[row * shape.capacity + k] = values[from];
      slots[row * shape.capacity + k] = expected[k];
    }
    const float* const own = &sorted[row * shape.capacity];
    record[0] = static_cast<unsigned short>(count - std::count(own, own + count, 0.0f));
    kernels::writeStarts(record, record[0], kInputs);
    const unsigned behind = row * shape.stride() + kHeader + count;
    if (count % 2 == 1 && made[behind] == kInputs) lists[behind] = kInputs;  // copied with the last one
  }
  CHECK(made == lists);
  if (!valued) return;
  CHECK(vertex.get<float>("sorted") == sorted);
  CHECK(vertex.get<unsigned>("slots") == slots);

  // There and back, values of slots that name nothing become 0.
  std::vector<float> back(values);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (static_cast<unsigned>(ids[i]) >= kInputs) back[i] = 0;
  }
  Alone unsort(library, "snnjax::UnsortEvents");
  unsort.edge("g", sorted).edge("slots", slots).edge("lists", lists).edge("out", std::vector<float>(ids.size(), 7));
  unsort.state("rows", shape.rows).state("capacity", shape.capacity).state("stride", shape.stride()).run();
  CHECK(unsort.get<float>("out") == back);
}

// Slots that nobody made reach nothing outside.
void testHostileSlots(const ipu_model::CodeletLibrary& library) {
  Alone unsort(library, "snnjax::UnsortEvents");
  unsort.edge("g", std::vector<float>{1, 2, 3}).edge("slots", std::vector<unsigned>{3, 0xffffffff, 1});
  unsort.edge("lists", std::vector<unsigned short>(12, 77)).edge("out", std::vector<float>(3, 7));
  unsort.state("rows", 1U).state("capacity", 3U).state("stride", 12U).run();
  CHECK((unsort.get<float>("out") == std::vector<float>{0, 3, 0}));
}

void testCost(const ipu_model::CodeletLibrary& library) {
  Alone unsort(library, "snnjax::UnsortEvents");
  unsort.zeros("g", 8).zeros("slots", 8).zeros("out", 8).edge("lists", std::vector<unsigned short>(16, 5));
  unsort.state("rows", 1U).state("capacity", 8U).state("stride", 16U).run();
  CHECK_EQUAL(unsort.cycles(), 19U + 12 + 8 * 2 + 6 + 5 * 8);
  // The first two shares have an entry each, and those of no entry their flags.
  Alone check(library, "snnjax::CheckEvents<int,false>");
  check.edge("ids", std::vector<int>{2, 4, 99}).zeros("sorted", 6).state("rows", 1U).state("capacity", 3U);
  CHECK_EQUAL(check.state("num_inputs", kInputs).run().cycles(), 17U + 6 + 9 + 4);
  // Sorted already: the flags, the search for the end, a word of two ids; the third word of the header has two starts.
  const auto sortOf = [&](const std::vector<int>& ids, unsigned in_order) {
    Alone sort(library, "snnjax::SortEvents<int,false>");
    sort.edge("ids", ids).zeros("lists", 12).state("rows", 1U).state("capacity", 3U).state("stride", 12U);
    sort.edge("in_order", std::vector<unsigned>(6, in_order));
    return sort.state("num_inputs", kInputs).run().cycles();
  };
  constexpr unsigned kFlags = 2 + 6 + 2, kOrdered = (4 + 2 * 7) + 14, kWord = 7, kStartsOfTwo = 2 * (2 + 4 + 2 * 7);
  CHECK_EQUAL(sortOf({2, 4, 99}, 1), 19U + kFlags + kOrdered + std::max(8 + kWord, 8 + kStartsOfTwo));
  constexpr unsigned kHeaderOfTwo = 8 + 2 * 3 + 5 * 3 + 4 * 3;
  CHECK_EQUAL(sortOf({4, 2, 99}, 0), 19U + kFlags + (20 + 3 * 5 + 2 * 7 + 1 * 9) + kHeaderOfTwo);
}

void test(const ipu_model::CodeletLibrary& library) {
  for (const Shape shape : {Shape{1, 1}, Shape{2, 3}, Shape{7, 8}, Shape{13, 21}}) {
    for (std::uint32_t seed = 0; seed < 4; ++seed) {
      for (const bool valued : {false, true}) {
        testSort<unsigned short>(library, "unsigned short", shape, valued, seed);
        testSort<int>(library, "int", shape, valued, seed);
      }
    }
  }
  testHostileSlots(library);
  testCost(library);
}

}  // namespace

int main(int argc, char** argv) { return kernels::runTest(argc, argv, test); }
