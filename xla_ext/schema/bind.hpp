// Arrays of an op find their places by their names on the wire: both the CPU handlers and the executor read them so.
#pragma once

#include <algorithm>
#include <charconv>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "schema/tables.hpp"

namespace snnjax::schema {

// "linears.bias[2]": the name of a leaf of the table, and of which layer.
struct IndexedName {
  std::string_view leaf;
  std::optional<std::size_t> layer;

  explicit IndexedName(std::string_view name) : leaf(name) {
    const std::size_t open = name.find('[');
    if (open == name.npos || name.back() != ']') return;
    std::size_t number = 0;
    const char* const end = name.data() + name.size() - 1;
    const auto [stop, error] = std::from_chars(name.data() + open + 1, end, number);
    if (error != std::errc() || stop != end) return;
    leaf = name.substr(0, open);
    layer = number;
  }
};

// A leaf of a root, and of which layer.
struct Place {
  std::size_t leaf, layer;

  bool operator==(const Place&) const = default;
};

// The places among the leaves of a root, for so many layers, that names say, which spaces separate. refuse(name,
// expected, actual) throws.
template <typename Refuse>
std::vector<Place> placesOf(std::span<const Leaf> leaves, std::string_view names, std::size_t layers, Refuse refuse) {
  const std::size_t count = leaves.size();
  std::vector<Place> places;
  std::size_t next = 0;  // names are in the order of the table, so the search is short
  while (!names.empty()) {
    const std::string_view text = names.substr(0, names.find(' '));
    names.remove_prefix(std::min(text.size() + 1, names.size()));
    const IndexedName name(text);
    std::size_t tried = 0, leaf = next;
    for (; tried < count && leaves[leaf].name != name.leaf; ++tried) leaf = leaf + 1 < count ? leaf + 1 : 0;
    const Place place{leaf, name.layer.value_or(0)};
    const bool is_layered = name.layer.has_value();
    if (tried == count || leaves[leaf].is_layered != is_layered || (is_layered && place.layer >= layers)) {
      refuse("names", "name the arrays of the op", '"' + std::string(text) + '"');
    }
    if (std::ranges::find(places, place) != places.end()) refuse(std::string(text), "be given once", "two arrays");
    places.push_back(place);
    next = leaf;
  }
  return places;
}

// A root with these arrays, of which number k stands in the k-th of the places.
template <typename Root, typename ItemAt, typename Refuse>
Root filled(const std::vector<Place>& places, std::size_t layers, std::size_t count, ItemAt item_at, Refuse refuse) {
  if (count != places.size()) {
    refuse("arrays", "be as many as their names, " + std::to_string(places.size()), std::to_string(count));
  }
  Root root;
  root.resize(layers);
  for (std::size_t item = 0; item < count; ++item) root.at(places[item].leaf, places[item].layer) = item_at(item);
  return root;
}

// The lengths of axes in a call without layers: an axis has that of the first array with it.
class Lengths {
 public:
  Lengths() { all_.fill(-1); }

  void fix(Axis axis, std::int64_t length) { all_[static_cast<std::size_t>(axis)] = length; }
  std::int64_t operator[](Axis axis) const { return all_[static_cast<std::size_t>(axis)]; }

  // What an array must have that has `own`, or -1 where it has no such axis.
  std::int64_t expected(Axis axis, std::int64_t own) {
    const AxisForm form = formOf(axis);
    if (form.other >= 0 && own == form.other) return own;
    if ((*this)[form.base] < 0) fix(form.base, own);
    return (*this)[form.base];
  }

 private:
  std::array<std::int64_t, kAxes.size()> all_;
};

// Throws unless those arrays are given that the table asks for. has(switch, layer) says what holds besides.
// visit(leaf, layer, item) gets every given array; what has no layer counts as behind the last one.
template <typename Root, typename Has, typename Visit, typename Refuse>
void check(Root& root, std::size_t layers, Has has, Visit visit, Refuse refuse) {
  for (std::size_t number = 0; number < Root::kLeaves.size(); ++number) {
    const Leaf& leaf = Root::kLeaves[number];
    for (std::size_t layer = 0; layer < (leaf.is_layered ? layers : 1); ++layer) {
      auto& item = root.at(number, layer);
      std::size_t others = 0;
      for (std::size_t i = 1; i <= leaf.others; ++i) others += static_cast<bool>(root.at(number + i, layer)) ? 1 : 0;
      const bool is_there = static_cast<bool>(item);
      if (others != 0 && (is_there || others != leaf.others)) {
        refuse(std::string(leaf.name), "be given in one form", "parts of another");
      }
      const bool is_given = is_there || others > 0;
      const bool has_record = leaf.within == Switch::kNone || has(leaf.within, layer);
      const bool is_expected =
          has_record && (leaf.given == Given::kAlways     ? true
                         : leaf.given == Given::kOptional ? is_given
                                                          : has(leaf.by, layer) == (leaf.given == Given::kWith));
      if (is_given != is_expected) {
        refuse(std::string(leaf.name), is_expected ? "be given" : "be left out", is_given ? "an array" : "nothing");
      }
      if (is_there) visit(leaf, leaf.is_layered ? layer : layers, item);
    }
  }
}

// Throws unless the results of a backward pass are cotangents of operands that are there and have one, and all those
// that a kernel `always` computes. visit(leaf, layer, operand, item) gets each result, an operand of nullptr for what
// is no cotangent: the operands are the first field of the results.
template <typename Operands, typename Results, typename Visit, typename Refuse>
void checkCotangents(const Operands& operands, const Results& results, std::size_t layers, Visit visit, Refuse refuse,
                     bool always = true) {
  for (std::size_t number = 0; number < Results::kLeaves.size(); ++number) {
    const Leaf& leaf = Results::kLeaves[number];
    for (std::size_t i = 0; i < (leaf.is_layered ? layers : 1); ++i) {
      const auto* const operand = number < Operands::kLeaves.size() ? &operands.at(number, i) : nullptr;
      const auto& item = results.at(number, i);
      const bool is_given = static_cast<bool>(item);
      if (operand != nullptr) {
        const bool may_be = leaf.gradient != Gradient::kNone && static_cast<bool>(*operand);
        if (is_given && !may_be) refuse(std::string(leaf.name), "have no cotangent", "one");
        if (always && !is_given && may_be && leaf.gradient == Gradient::kAlways) {
          refuse(std::string(leaf.name), "be given", "nothing");
        }
      }
      if (is_given) visit(leaf, leaf.is_layered ? i : layers, operand, item);
    }
  }
}

}  // namespace snnjax::schema
