// Costs of one element more, for every size of every codelet: a tail is charged once, an even number of elements no
// more than what their pairs take, and many elements in proportion.
#include <set>

#include "kernels/alone.hpp"
#include "poplar_kernels/conventions.hpp"

namespace {

using namespace kernels;
using ipu_model::Direction;
using ipu_model::FieldType;
using ipu_model::VertexType;

// States that are no numbers of elements: where something begins, what a row takes, what a test chooses.
const std::set<std::string> kPlaces = {
    "back",       "by",       "first",  "first_high", "first_id",   "first_row",  "first_share",    "four",
    "last_share", "from_end", "last",   "longest",    "num_blocks", "once",       "offered_stride", "one",
    "own",        "pointers", "sorted", "stride",     "two",        "transposed",
};

using Size = std::pair<std::string, std::string>;  // a class, and a state of it

// Sizes whose elements go two or more at a time if their number is even, and one by one if it is odd; of Reduce those
// of floats.
const std::set<Size> kInPairs = {
    {"DynamicSlice", "width"},
    {"Gather", "width"},
    {"GatherAt", "width"},
    {"LastSpikes", "num_neurons"},
    {"LastSpikesGradient", "num_neurons"},
    {"ListInputs", "num_inputs"},
    {"LoadBlock", "width"},
    {"Reduce", "inner"},
    {"RowsDense", "num_inputs"},
    {"ScatterRows", "width"},
    {"SelectCandidates", "neurons"},
    {"SelectSpikesBackward", "neurons"},
    {"SliceWindow", "width"},
    {"SlotsOfNeurons", "neurons"},
    {"SumRows", "columns"},
    {"UpdateWindow", "width"},
};

// Neurons of a tile, and columns of matrices whose rows are added up, which are even.
const std::set<Size> kEven = {
    {"AddShared", "neurons"},
    {"GatherGradient", "neurons"},
    {"LeakyGradientScan", "neurons"},
    {"LeakyScan", "neurons"},
    {"LifFirstGradient", "neurons"},
    {"LifGradientScan", "neurons"},
    {"LifLastGradient", "neurons"},
    {"LifRecurrentGradient", "neurons"},
    {"LifRecurrentStep", "neurons"},
    {"LifScan", "neurons"},
    {"ListBlock", "neurons"},
    {"PackMarks", "neurons"},
    {"ReadoutGradient", "columns"},
    {"RowsCurrent", "neurons"},
    {"RowsDots", "neurons"},
    {"RowsGradient", "neurons"},
    {"SpikeMatmul", "outputs"},
    {"SpikeMatmulValuesGradient", "outputs"},
    {"SpikeMatmulWeightsGradient", "outputs"},
    {"StepDots", "neurons"},
    {"SumShared", "neurons"},
};

// What is at most so many: bits of a word, neurons that other sizes give, and candidates, of which here are none.
const std::set<Size> kBounds = {
    {"CutCandidates", "capacity"}, {"CutCandidates", "num_neurons"}, {"SelectMarked", "blocks"},
    {"SelectMarked", "neurons"},   {"ScatterList", "columns"},       {"ScatterList", "num_neurons"},
    {"TurnMasks", "rows"},
};

// What an element more may take beside one of many that go one by one, where that is more than two of these: turns of
// several elements, words of bits, blocks of columns; searches, and rows that all workers share where they are few.
const std::map<Size, double> kSteps = {
    {{"Cast", "count"}, 18},   // up to three at the end one by one, in halves merged into words, beside four a turn
    {{"Fill", "count"}, 220},  // seven bytes at the end, which are merged into words, beside 32 a turn
    {{"GatherGradient", "neurons"}, 4},
    {{"JoinCandidates", "num_neurons"}, 4},
    {{"ListInputs", "num_inputs"}, 2},
    {{"ListBlock", "neurons"}, 8},
    {{"MaskLists", "blocks"}, 4},
    {{"MaskLists", "capacity"}, 4},
    {{"MaskLists", "columns"}, 160},  // of several words a block, whose place each entry has to find
    {{"MaskSpikes", "capacity"}, 3},
    {{"MatrixProduct", "columns"}, 16},
    {{"MatrixProduct", "depth"}, 16},
    {{"MatrixProduct", "rows"}, 16},
    {{"MergeSpikes", "parts"}, 6},
    {{"PackMarks", "neurons"}, 20},
    {{"RowsCurrent", "neurons"}, 3},
    {{"RowsDots", "neurons"}, 4},
    {{"RowsGradient", "neurons"}, 6},
    {{"ScatterList", "capacity"}, 8},
    {{"SelectMarked", "columns"}, 18},
    {{"SelectSpikesBackward", "neurons"}, 16},
    {{"SlotsOfNeurons", "neurons"}, 16},
    {{"SortEvents", "rows"}, 12},
    {{"SortNumbers", "length"}, 5},
    {{"SpikeMatmul", "outputs"}, 4},
    {{"SpikeMatmulValuesGradient", "outputs"}, 4},
    {{"SpikeMatmulWeightsGradient", "outputs"}, 3},
    {{"StepDots", "capacity"}, 5},
    {{"StepDots", "neurons"}, 3},
    {{"SumPartials", "count"}, 8},
    {{"SumPartials", "parts"}, 16},
    {{"SumShared", "neurons"}, 5},
    {{"SumShared", "rows"}, 48},  // of a word of 32, which need no search if all are set
};

std::string classOf(const VertexType& type) {
  const std::size_t first = std::string("snnjax::").size();
  return type.name.substr(first, type.name.find('<') - first);
}

// Sequences without an end, masks of all; a list of rows ends there.
const std::set<std::string> kFull = {"lengths", "masks", "shared_bits"};

bool isReal(const FieldType& field) { return field.type == poplar::FLOAT || field.type == poplar::HALF; }

// A vertex whose sizes are all `others` but one, with lists that are full and floats that are 1.
class Sized {
 public:
  Sized(const ipu_model::CodeletLibrary& library, const VertexType& type, unsigned others)
      : library_(library), type_(type), others_(others) {}

  // Of all workers, with `count` in place of that size.
  double slots(const std::string& size, unsigned count) const {
    Alone vertex(library_, type_.name);
    const std::map<std::string, unsigned> sizes = sizesOf(size, count);
    const std::size_t elements = std::size_t{80} * (count + 16);  // more than any field needs
    for (const FieldType& field : type_.fields) set(vertex, field, sizes, elements);
    vertex.run();
    std::uint64_t all = 0;
    for (unsigned worker = 0; worker < vertex.numWorkers(); ++worker) all += vertex.cycles(worker);
    return static_cast<double>(all);
  }

  std::vector<std::string> sizes() const {
    std::vector<std::string> names;
    for (const FieldType& field : type_.fields) {
      const bool is_size = isNumber(field) && !kPlaces.contains(field.name);
      if (is_size && !kBounds.contains({classOf(type_), field.name})) names.push_back(field.name);
    }
    return names;
  }

 private:
  static bool isNumber(const FieldType& field) {
    return field.direction == Direction::State && field.type == poplar::UNSIGNED_INT;
  }

  std::map<std::string, unsigned> sizesOf(const std::string& size, unsigned count) const {
    std::map<std::string, unsigned> sizes;
    for (const FieldType& field : type_.fields) {
      if (!isNumber(field)) continue;
      const unsigned own = kPlaces.contains(field.name) ? 0 : field.name == size ? count : others_;
      sizes[field.name] = own + (kEven.contains({classOf(type_), field.name}) ? own % 2 : 0);
    }
    const auto has = [&](const char* name) { return sizes.contains(name); };
    sizes["num_blocks"] = sizes["sorted"] = 1;
    // Rows are as long as what they hold.
    const unsigned neurons = has("columns") ? sizes["columns"] : has("neurons") ? sizes["neurons"] : 0;
    sizes["offered_stride"] = snnjax::offeredStride(neurons);
    const char* const slots = has("capacity") ? "capacity" : has("num_inputs") ? "num_inputs" : "num_neurons";
    sizes["stride"] = has(slots) ? snnjax::listStride(sizes[slots]) : sizes["offered_stride"];
    if (has("readable")) sizes["readable"] = sizes["neurons"];
    if (has("width") && has("count")) sizes["rows"] = std::max(sizes["rows"], sizes["count"]);  // a window of a table
    return sizes;
  }

  void set(Alone& vertex, const FieldType& field, const std::map<std::string, unsigned>& sizes,
           std::size_t elements) const {
    const bool is_float = field.type == poplar::FLOAT, is_record = field.name == "list" || field.name == "lists";
    if (isNumber(field)) {
      vertex.state(field.name, sizes.at(field.name));
    } else if (field.direction == Direction::State && field.type == poplar::BOOL) {
      vertex.state(field.name, field.name == "raises");
    } else if (field.direction == Direction::State) {
      vertex.zeroState(field.name);
    } else if (field.nesting == 0) {
      vertex.zeros(field.name, 1);
    } else if (is_float && field.nesting == 1) {
      vertex.edge(field.name, std::vector<float>(elements, 1));
    } else if (kFull.contains(field.name) || (is_record && field.type == poplar::UNSIGNED_INT)) {
      vertex.edge(field.name, std::vector<unsigned>(elements, ~0U));
    } else if (field.name == "shared" || field.name == "records") {
      vertex.edge(field.name, std::vector<unsigned>(elements, 1));
    } else if (is_record && field.size == 2 && field.direction == Direction::Input && sizes.contains("capacity")) {
      vertex.edge(field.name, fullRecords(elements, sizes.at("stride"), sizes.at("capacity")));
    } else {
      vertex.zeros(field.name, elements);
    }
  }

  // All entries are those of the first worker.
  static std::vector<unsigned short> fullRecords(std::size_t elements, unsigned stride, unsigned capacity) {
    std::vector<unsigned short> records(elements);
    for (std::size_t row = 0; row + stride <= elements; row += stride) {
      std::fill_n(records.begin() + static_cast<std::ptrdiff_t>(row), snnjax::kListHeader,
                  static_cast<unsigned short>(capacity));
    }
    return records;
  }

  const ipu_model::CodeletLibrary& library_;
  const VertexType& type_;
  unsigned others_;
};

constexpr unsigned kMany = 192, kFew = 34;  // whole turns of all workers; more than a turn of one

void testSize(const Sized& vertex, const VertexType& type, const std::string& size) {
  const auto check = [&](bool good, const char* what, unsigned count) {
    if (!good) check::that(false, what, __FILE__, __LINE__, type.name + "." + size + " at " + std::to_string(count));
  };
  const auto slots = [&](unsigned count) { return vertex.slots(size, count); };
  const Size key(classOf(type), size);
  const bool is_even = kEven.contains(key),
             in_pairs = kInPairs.contains(key) && (key.first != "Reduce" || isReal(type.fields.front()));
  const double few = slots(2), many = slots(kMany), more = slots(2 * kMany);
  check(more - few < 2.5 * (many - few) + 1 && more - few > 1.7 * (many - few) - 1, "takes twice as long", kMany);
  // An element more among many: of an even number, and of an odd one, whose elements may go one by one.
  const double even = (more - many) / kMany, odd = (slots(2 * kMany + 1) - slots(kMany + 1)) / kMany;
  check(in_pairs == (odd > 1.1 * even) && even < 1.1 * odd + 1, "takes pairs, or one by one", kMany);
  const double unit = is_even ? 2 * even : odd;  // a pair, or an element that goes alone
  const auto known = kSteps.find(key);
  std::vector<double> all = {0, slots(1), slots(2)};
  for (unsigned count = 1; count <= kFew; ++count) {
    all.push_back(slots(count + 2));
    const double added = all[count + (in_pairs || is_even ? 2 : 1)] - all[count];
    const double single = in_pairs && count % 2 == 0 ? 1.5 : 2.2;  // two more in pairs take as long as one
    const double most = known != kSteps.end() ? known->second : size == "width" ? 32 : single;
    check(added <= most * unit && added >= -unit * (most > 2.2 ? most : 1), "takes an element more", count);
  }
}

// Costs depend on the fields, and how wide their elements are.
std::string fieldsOf(const VertexType& type) {
  std::string fields = classOf(type);
  for (const FieldType& field : type.fields) {
    fields += ' ' + field.name + (isReal(field) ? '~' : ':') + std::to_string(field.size);
  }
  return fields;
}

void test(const ipu_model::CodeletLibrary& library) {
  std::set<std::string> seen;
  for (const VertexType& type : library.vertexTypes()) {
    if (type.worker_cycles == nullptr || !seen.insert(fieldsOf(type)).second) continue;
    const Sized vertex(library, type, 3);
    for (const std::string& size : vertex.sizes()) testSize(vertex, type, size);
  }
}

}  // namespace

int main(int argc, char** argv) {
  return runTest(argc, argv, [](const ipu_model::CodeletLibrary& library) { test(library); });
}
