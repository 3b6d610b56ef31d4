// Random loops against the same loops on the host: whatever a body does with its values, each iteration sees those of
// the previous one, whatever their memory.
#include <cstdint>

#include "plans.hpp"

namespace {

using namespace plans;

constexpr Dtype kInt = Dtype::kInt32;
using Row = std::vector<std::int32_t>;
constexpr std::size_t kLength = 40;  // elements of a value: some on each tile

class Draw {
 public:
  explicit Draw(std::uint32_t seed) : state_(seed) {}
  std::size_t below(std::size_t limit) {
    state_ = state_ * 1664525U + 1013904223U;  // Numerical Recipes' generator
    return (state_ >> 8) % limit;
  }

 private:
  std::uint32_t state_;
};

Row sum(const Row& a, const Row& b) {
  Row result(a.size());
  for (std::size_t i = 0; i < a.size(); ++i) result[i] = a[i] + b[i];
  return result;
}

// Some of the first, then the rest of the second.
Row spliced(const Row& a, const Row& b, std::size_t at) {
  Row result = b;
  std::copy_n(a.begin(), at, result.begin());
  return result;
}

enum class Kind { kSum, kReverse, kSplice };

// An instruction of a body: the sum of two values, one of them in reverse, or a part of each.
struct Operation {
  std::size_t a, b;
  Kind kind;
  std::size_t at;  // where they are spliced

  Row onHost(const std::vector<Row>& values) const {
    if (kind == Kind::kReverse) return {values[a].rbegin(), values[a].rend()};
    return kind == Kind::kSum ? sum(values[a], values[b]) : spliced(values[a], values[b], at);
  }
  ValueId onDevice(Builder& builder, Block& body, const std::vector<ValueId>& values) const {
    const ArrayType type{kInt, {kLength}};
    if (kind == Kind::kReverse) return builder.add(body, "reverse", {values[a]}, type, {{0}});
    if (kind == Kind::kSum) return builder.binary(body, "add", values[a], values[b]);
    const auto cut = static_cast<std::int64_t>(at), end = static_cast<std::int64_t>(kLength);
    const ValueId front = builder.add(body, "slice", {values[a]}, {kInt, {at}}, {{0}, {cut}, {1}});
    const ValueId back = builder.add(body, "slice", {values[b]}, {kInt, {kLength - at}}, {{cut}, {end}, {1}});
    return builder.add(body, "concatenate", {front, back}, type, {{0}});
  }
};

struct Loop {
  std::size_t carried;
  std::vector<Operation> operations;  // on the carried values, two of outside, and what operations before gave
  std::vector<std::size_t> results;
  std::size_t iterations, inner_iterations;
  bool counted, nested;
  // The loop starts from values that are computed, the body reads some of these, and nothing reads them afterwards.
  bool computed;
};

Loop drawn(std::uint32_t seed) {
  Draw draw(seed);
  Loop loop{1 + draw.below(4), {}, {}, draw.below(4), 1 + draw.below(3), draw.below(2) == 0, draw.below(3) == 0,
            draw.below(2) == 0};
  std::size_t known = loop.carried + 2;
  for (std::size_t i = draw.below(6); i > 0; --i) {
    constexpr Kind kKinds[] = {Kind::kSum, Kind::kReverse, Kind::kSplice, Kind::kSplice};
    loop.operations.push_back(
        {draw.below(known), draw.below(known), kKinds[draw.below(std::size(kKinds))], 1 + draw.below(kLength - 1)});
    ++known;
  }
  for (std::size_t i = 0; i < loop.carried; ++i) loop.results.push_back(draw.below(known));
  return loop;
}

void iterateOnHost(const Loop& loop, std::vector<Row>& carried, const std::vector<Row>& outside) {
  std::vector<Row> values = carried;
  values.insert(values.end(), outside.begin(), outside.end());
  for (const Operation& each : loop.operations) values.push_back(each.onHost(values));
  for (std::size_t i = 0; i < loop.carried; ++i) carried[i] = values[loop.results[i]];
}

std::vector<ValueId> likeCarried(Builder& builder, std::size_t count) {
  std::vector<ValueId> values;
  for (std::size_t i = 0; i < count; ++i) values.push_back(builder.value(kInt, {kLength}));
  return values;
}

Block bodyOf(Builder& builder, const Loop& loop, const std::vector<ValueId>& outside) {
  Block body;
  body.parameters = likeCarried(builder, loop.carried);
  std::vector<ValueId> values = body.parameters;
  values.insert(values.end(), outside.begin(), outside.end());
  for (const Operation& each : loop.operations) values.push_back(each.onDevice(builder, body, values));
  for (const std::size_t result : loop.results) body.results.push_back(values[result]);
  return body;
}

// Adds a loop that is counted, or one that counts by itself.
std::vector<ValueId> addLoop(Builder& builder, Block& block, const std::vector<ValueId>& initial, Block body,
                             std::size_t iterations, bool counted) {
  std::vector<ValueId> inputs = initial, outputs = likeCarried(builder, initial.size());
  if (counted) {
    block.instructions.push_back(Builder::instruction(
        "repeat", inputs, outputs, {{static_cast<std::int64_t>(iterations)}}, {}, {std::move(body)}));
    return outputs;
  }
  const auto number = [&](std::size_t value) {
    return builder.constant<std::int32_t>(kInt, {}, {static_cast<std::int32_t>(value)});
  };
  const ValueId zero = number(0), one = number(1), last = number(iterations);
  Block condition;
  condition.parameters = likeCarried(builder, initial.size());
  condition.parameters.push_back(builder.value(kInt, {}));
  condition.results = {builder.add(condition, "elementwise", {condition.parameters.back(), last}, {Dtype::kBool, {}},
                                   {{0, 0}, {1, 1}, {2, 0, 1}, {0, 2}},
                                   {"load.s32", "load.s32", "lt.s32", "store.bool"})};
  body.parameters.push_back(builder.value(kInt, {}));
  body.results.push_back(builder.binary(body, "add", body.parameters.back(), one));
  inputs.push_back(zero);
  outputs.push_back(builder.value(kInt, {}));
  block.instructions.push_back(
      Builder::instruction("while", inputs, outputs, {}, {}, {std::move(condition), std::move(body)}));
  outputs.pop_back();
  return outputs;
}

// Arguments of a loop: carried values and two others, on the host and on the device.
struct Values {
  std::vector<Row> carried, fixed;
  std::vector<ValueId> initial, outside;
  std::vector<std::shared_ptr<Array>> arguments;
};

Values valuesFor(Builder& builder, const Loop& loop, std::uint32_t seed, const std::shared_ptr<System>& system) {
  Values values;
  for (std::size_t i = 0; i < loop.carried + 2; ++i) {
    Row row(kLength);
    for (std::size_t k = 0; k < kLength; ++k) row[k] = static_cast<std::int32_t>(seed % 7 + 100 * i + k);
    (i < loop.carried ? values.initial : values.outside).push_back(builder.parameter(kInt, {kLength}));
    (i < loop.carried ? values.carried : values.fixed).push_back(row);
    values.arguments.push_back(array(system, kInt, {kLength}, row));
  }
  return values;
}

// Results pair with donated parameters in another order than theirs.
std::vector<bool> donateCarried(Builder& builder, const Loop& loop) {
  std::vector<bool> donated(loop.carried + 2);
  for (std::size_t i = 0; i < loop.carried; ++i) {
    builder.plan.aliases.push_back({(i + 1) % loop.carried, i});
    builder.plan.donated.push_back(i);
    donated[i] = true;
  }
  return donated;
}

// The loop starts from the double of each value, and two of these doubles are the values of outside.
std::vector<ValueId> doubled(Builder& builder, Values& values) {
  std::vector<ValueId> starts;
  for (const ValueId value : values.initial) starts.push_back(builder.binary(builder.plan.main, "add", value, value));
  for (Row& row : values.carried) row = sum(row, row);
  values.outside = {starts.front(), starts.back()};
  values.fixed = {values.carried.front(), values.carried.back()};
  return starts;
}

void testLoop(std::uint32_t seed) {
  const Loop loop = drawn(seed);
  const auto system = plans::system(3);
  Builder builder;
  Values values = valuesFor(builder, loop, seed, system);
  const Row first = values.carried[0];
  Block& main = builder.plan.main;
  const std::vector<ValueId> starts = loop.computed ? doubled(builder, values) : values.initial;
  Block body = bodyOf(builder, loop, values.outside);
  if (loop.nested) {
    Block outer;
    outer.parameters = likeCarried(builder, loop.carried);
    outer.results = addLoop(builder, outer, outer.parameters, std::move(body), loop.inner_iterations, !loop.counted);
    body = std::move(outer);
  }
  main.results = addLoop(builder, main, starts, std::move(body), loop.iterations, loop.counted);
  main.results.push_back(values.initial[0]);  // is what it was
  const std::vector<bool> donated = seed % 3 == 0 ? donateCarried(builder, loop) : std::vector<bool>();
  const auto results = builder.build(system)->run({values.arguments}, donated)[0];
  for (std::size_t iteration = 0; iteration < loop.iterations * (loop.nested ? loop.inner_iterations : 1);
       ++iteration) {
    iterateOnHost(loop, values.carried, values.fixed);
  }
  values.carried.push_back(first);
  for (std::size_t i = 0; i < values.carried.size(); ++i) {
    check::that(valuesOf<std::int32_t>(*results[i]) == values.carried[i], "the loop of seed", __FILE__, __LINE__,
                std::to_string(seed) + ", value " + std::to_string(i));
  }
}

}  // namespace

int main() {
  constexpr std::uint32_t kLoops = 600;
  for (std::uint32_t seed = 0; seed < kLoops; ++seed) {
    const std::string error = check::messageOf([=] { testLoop(seed); });
    check::that(error.empty(), "no exception", __FILE__, __LINE__, std::to_string(seed) + ": " + error);
  }
  return check::failures == 0 ? 0 : 1;
}
