// Invalid plans: whatever the bytes, an Error and nothing else.
#include <algorithm>
#include <functional>

#include "executor/lowering.hpp"
#include "plans.hpp"

namespace {

using namespace plans;

constexpr Dtype kFloat = Dtype::kFloat32, kInt = Dtype::kInt32;

// A plan with blocks, constants, aliases and an elementwise program.
Builder example() {
  Builder builder;
  Block& main = builder.plan.main;
  const ValueId x = builder.parameter(kFloat, {4, 6}), index = builder.parameter(kInt, {});
  const ValueId one = builder.constant<float>(kFloat, {4, 6}, {1});
  const ValueId sum = builder.binary(main, "add", x, one);
  std::vector<Block> branches(2);
  branches[0].results = {sum};
  branches[1].results = {builder.binary(branches[1], "multiply", sum, sum)};
  const ValueId chosen = builder.value(kFloat, {4, 6});
  main.instructions.push_back(Builder::instruction("case", {index}, {chosen}, {}, {}, branches));
  Block body;
  body.parameters = {builder.value(kFloat, {4, 6})};
  body.results = {builder.binary(body, "add", body.parameters[0], one)};
  const ValueId looped = builder.value(kFloat, {4, 6});
  main.instructions.push_back(Builder::instruction("repeat", {chosen}, {looped}, {{3}}, {}, {body}));
  const ValueId part = builder.add(main, "slice", {looped}, {kFloat, {2, 6}}, {{1, 0}, {3, 6}, {1, 1}});
  main.results = {looped, part};
  builder.plan.aliases = {{0, 0}};
  builder.plan.donated = {0};
  return builder;
}

// "" if the bytes are a plan, "Error: ..." if they are refused; anything else is another exception.
std::string verdict(const std::vector<std::byte>& bytes) {
  try {
    readPlan(bytes);
    return "";
  } catch (const Error& error) {
    return std::string("Error: ") + error.what();
  }
}

void aPlanIsRead() {
  const Plan plan = readPlan(bytesOf(example().plan));
  CHECK_EQUAL(plan.name, std::string("test"));
  CHECK_EQUAL(plan.main.instructions.size(), std::size_t{4});
  CHECK_EQUAL(plan.main.instructions[1].blocks.size(), std::size_t{2});
  CHECK(bytesOf(plan) == bytesOf(example().plan));
}

void everyPartIsMissed() {
  const std::vector<std::byte> whole = bytesOf(example().plan);
  for (std::size_t size = 0; size < whole.size(); ++size) {
    CHECK(verdict({whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size)}).starts_with("Error: "));
  }
  std::vector<std::byte> more = whole;
  more.push_back(std::byte{0});
  CHECK(verdict(more).starts_with("Error: "));
}

// Any number in the stream may take any value; most changes are detected, and none does harm.
void hostileNumbersAreRefused() {
  const std::vector<std::byte> whole = bytesOf(example().plan);
  const std::int64_t hostile[] = {-1, 0, 1, 2, 5, 1000, INT64_MAX, INT64_MIN, std::int64_t{1} << 40, 0x7fffffff};
  std::size_t refused = 0, tried = 0;
  for (std::size_t at = 0; at + 8 <= whole.size(); ++at) {
    for (const std::int64_t number : hostile) {
      std::vector<std::byte> bytes = whole;
      std::memcpy(bytes.data() + at, &number, sizeof number);
      refused += verdict(bytes).empty() ? 0 : 1;
      ++tried;
    }
  }
  CHECK(refused > tried / 2);
}

void blocksAreNotTooDeep() {
  Builder builder;
  Block inner;
  for (int depth = 0; depth < 70; ++depth) {
    Block outer;
    outer.instructions.push_back(Builder::instruction("repeat", {}, {}, {{1}}, {}, {inner}));
    inner = std::move(outer);
  }
  builder.plan.main = std::move(inner);
  CHECK(verdict(bytesOf(builder.plan)).find("64 deep") != std::string::npos);
}

// The plan with one error, and the message for it.
void wrong(const char* part, const std::function<void(Builder&)>& change) {
  Builder builder = example();
  change(builder);
  const std::string message = verdict(bytesOf(builder.plan));
  check::that(message.find(part) != message.npos, part, __FILE__, __LINE__, message);
}

void sensePlansMake() {
  wrong("1 to 1024 partitions", [](Builder& b) { b.plan.num_partitions = 0; });
  wrong("a device for each", [](Builder& b) { b.plan.devices.clear(); });
  wrong("each device once", [](Builder& b) {
    b.plan.num_partitions = 3;
    b.plan.devices = {0, 1, 0};
  });
  wrong("before they are used", [](Builder& b) { b.plan.main.instructions[0].inputs[0] = 9999; });
  wrong("before they are used",
        [](Builder& b) { std::swap(b.plan.main.instructions[0], b.plan.main.instructions[2]); });
  // What a block defines is not seen outside of it.
  wrong("before they are used",
        [](Builder& b) { b.plan.main.results[1] = b.plan.main.instructions[1].blocks[1].results[0]; });
  wrong("each value once", [](Builder& b) { b.plan.main.parameters.push_back(b.plan.main.parameters[0]); });
  wrong("bytes of its constants", [](Builder& b) { b.plan.constants[0].bytes.pop_back(); });
  wrong("of one type", [](Builder& b) { b.plan.aliases = {{1, 0}}; });
  wrong("once", [](Builder& b) { b.plan.aliases = {{0, 0}, {0, 0}}; });
  wrong("complex numbers among its own", [](Builder& b) { b.plan.complex_results = {7}; });
  wrong("as pairs of f32", [](Builder& b) { b.plan.complex_parameters = {0}; });
  wrong("its own parameters", [](Builder& b) { b.plan.donated = {7}; });
  wrong("operations of its README", [](Builder& b) { b.plan.main.instructions[0].op = "no_such_operation"; });
  wrong("(test.py:1)", [](Builder& b) { b.plan.main.instructions[3].ints[1] = {9, 6}; });
  wrong("inside of the array", [](Builder& b) { b.plan.main.instructions[3].ints[0] = {4, 0}; });
  wrong("a number for each dimension", [](Builder& b) { b.plan.main.instructions[3].ints[2] = {1}; });
  wrong("fit the types", [](Builder& b) { b.plan.types[b.plan.main.instructions[2].outputs[0]].shape = {6, 4}; });
}

// Products of sizes are compared without overflow: that of 2^32 and 2^32 would be 0.
void arraysThatAreAbsurdlyLargeAreRefused() {
  const std::size_t large = std::size_t{1} << 32, most = std::size_t{1} << 40;
  for (const Shape& shape : {Shape{large, large}, Shape{large, large, 0}, Shape{0, 2 * most}, Shape{most, 2},
                             Shape{3, std::size_t{1} << 62, 4}, Shape{SIZE_MAX / 2, 3}}) {
    wrong("up to 2^40 elements", [&](Builder& b) { b.plan.types[0].shape = shape; });
  }
  Builder builder = example();
  builder.value(kFloat, {large, most / large});
  builder.value(kFloat, {most, 0});
  CHECK_EQUAL(verdict(bytesOf(builder.plan)), std::string());
}

void groupsAreAsManyAsTheirMembers() {
  const auto verdictOn = [](std::int64_t count, std::int64_t size) {
    Builder builder;
    builder.plan.num_partitions = 4;
    builder.plan.devices = {0, 1, 2, 3};
    const ValueId x = builder.parameter(kFloat, {6});
    builder.plan.main.results = {
        builder.add(builder.plan.main, "all_reduce", {x}, {kFloat, {6}}, {{0, 1, 2, 3}, {count, size}}, {"add"})};
    return verdict(bytesOf(builder.plan));
  };
  CHECK_EQUAL(verdictOn(2, 2), std::string());
  CHECK_EQUAL(verdictOn(4, 1), std::string());
  const std::int64_t one_more = (std::int64_t{1} << 62) + 1;  // four times it is 4
  for (const auto& [count, size] :
       {std::pair(std::int64_t{4}, one_more), std::pair(one_more, std::int64_t{4}),
        std::pair(std::int64_t{0}, std::int64_t{4}), std::pair(std::int64_t{3}, std::int64_t{1})}) {
    CHECK(verdictOn(count, size).find("as many partitions as its groups") != std::string::npos);
  }
}

void elementwiseProgramsAreChecked() {
  const auto program = [](std::vector<std::string> texts, Builder::Ints slots) {
    Builder builder;
    const ValueId x = builder.parameter(kFloat, {3});
    builder.plan.main.results = {
        builder.add(builder.plan.main, "elementwise", {x}, {kFloat, {3}}, std::move(slots), std::move(texts))};
    return verdict(bytesOf(builder.plan));
  };
  const auto says = [](const std::string& message, const char* part) {
    check::that(message.find(part) != message.npos, part, __FILE__, __LINE__, message);
  };
  CHECK_EQUAL(program({"load.f32", "store.f32"}, {{0, 0}, {0, 0}}), std::string());
  says(program({"load.f32", "store.f32"}, {{0, 0}}), "slots for each operation");
  says(program({"load.f32", "store.f32"}, {{24, 0}, {0, 24}}), "24 slots");
  says(program({"load.f32", "store.f32"}, {{-1, 0}, {0, -1}}), "24 slots");
  says(program({"load.f32", "store.f32"}, {{0, 1}, {0, 0}}), "what its inputs hold");
  says(program({"load.s32", "store.f32"}, {{0, 0}, {0, 0}}), "what its inputs hold");
  says(program({"load.f32", "store.bool"}, {{0, 0}, {0, 0}}), "what its outputs hold");
  says(program({"load.f32", "store.f32"}, {{0, 0}, {1, 0}}), "what its outputs hold");
  says(program({"store.f32"}, {{0, 0}}), "write slots before");
  says(program({"load.f32", "hypot.f32", "store.f32"}, {{0, 0}, {0, 0}, {0, 0}}), "\"hypot.f32\"");
  says(program({"load.f32", "add.f32", "store.f32"}, {{0, 0}, {0, 0}, {0, 0}}), "known operations");
  says(program({"load.f32"}, {{0, 0}}), "store all outputs");
  says(program({"load.f32", "store.f32", "store.f32"}, {{0, 0}, {0, 0}, {0, 0}}), "each output once");
}

// A valid form of each operation with numbers, and invalid numbers for it.
struct Form {
  const char* op;
  std::vector<ArrayType> inputs, outputs;
  Builder::Ints ints;
  std::vector<std::string> texts;
};

std::vector<Form> forms() {
  const ArrayType matrix{kFloat, {4, 6}}, index{kInt, {}}, indices{kInt, {5, 1}};
  return {
      {"broadcast_in_dim", {{kFloat, {6}}}, {matrix}, {{1}}, {}},
      {"reshape", {matrix}, {{kFloat, {24}}}, {{}}, {}},
      {"transpose", {matrix}, {{kFloat, {6, 4}}}, {{1, 0}}, {}},
      {"transposed", {matrix}, {{kFloat, {6, 4}}}, {}, {}},
      {"slice", {matrix}, {{kFloat, {2, 3}}}, {{1, 0}, {3, 6}, {1, 2}}, {}},
      {"reverse", {matrix}, {matrix}, {{1}}, {}},
      {"concatenate", {matrix, matrix}, {{kFloat, {8, 6}}}, {{0}}, {}},
      {"pad", {matrix, {kFloat, {}}}, {{kFloat, {8, 13}}}, {{1, 0}, {0, 2}, {1, 1}}, {}},
      {"iota", {}, {{kInt, {4, 6}}}, {{1}}, {}},
      {"reduce", {matrix}, {{kFloat, {6}}}, {{0}}, {"add"}},
      {"arg_reduce", {matrix}, {{kFloat, {4}}, {kInt, {4}}}, {{1}}, {"maximum"}},
      {"cumulative", {matrix}, {matrix}, {{1, 0}}, {"add"}},
      {"dot", {matrix, {kFloat, {6, 2}}}, {{kFloat, {4, 2}}}, {{}, {}, {1}, {0}}, {}},
      {"gather", {matrix, indices}, {{kFloat, {5, 6}}}, {{1}, {0}, {}, {}, {0}, {1}, {1, 6}, {0}}, {}},
      {"scatter", {matrix, indices, {kFloat, {5, 6}}}, {matrix}, {{1}, {0}, {}, {}, {0}, {1}, {4}}, {"add"}},
      {"dynamic_slice", {matrix, index, index}, {{kFloat, {1, 6}}}, {{1, 6}}, {}},
      {"dynamic_update_slice", {matrix, {kFloat, {1, 6}}, index, index}, {matrix}, {}, {}},
      {"sort", {matrix, {kInt, {4, 6}}}, {matrix, {kInt, {4, 6}}}, {{1, 1}}, {"ascending"}},
      {"top_k", {matrix}, {{kFloat, {4, 2}}, {kInt, {4, 2}}}, {{2}}, {}},
      {"all_reduce", {matrix}, {matrix}, {{0}, {1, 1}}, {"add"}},
      {"all_gather", {matrix}, {matrix}, {{0}, {1, 1}, {0}}, {}},
      {"reduce_scatter", {matrix}, {matrix}, {{0}, {1, 1}, {0}}, {"add"}},
      {"all_to_all", {matrix}, {matrix}, {{0}, {1, 1}, {0, 1}}, {}},
      {"collective_permute", {matrix}, {matrix}, {{0, 0}}, {}},
  };
}

std::string verdictOf(const Form& form) {
  Builder builder;
  std::vector<ValueId> inputs, outputs;
  for (const ArrayType& type : form.inputs) inputs.push_back(builder.parameter(type.dtype, type.shape));
  for (const ArrayType& type : form.outputs) outputs.push_back(builder.value(type.dtype, type.shape));
  builder.plan.main.instructions.push_back(Builder::instruction(form.op, inputs, outputs, form.ints, form.texts));
  builder.plan.main.results = outputs;
  return verdict(bytesOf(builder.plan));
}

void operationsAreChecked() {
  for (const Form& right : forms()) {
    const auto refused = [&](const std::function<void(Form&)>& change, const char* what) {
      Form form = right;
      change(form);
      check::that(verdictOf(form).starts_with("Error: "), what, __FILE__, __LINE__, right.op);
    };
    check::that(verdictOf(right).empty(), right.op, __FILE__, __LINE__, verdictOf(right));
    for (std::size_t list = 0; list < right.ints.size(); ++list) {
      if (std::string(right.op) == "reshape") continue;
      refused(
          [=](Form& form) { form.ints.erase(form.ints.begin() + static_cast<std::ptrdiff_t>(list), form.ints.end()); },
          "a list less");
      refused([=](Form& form) { form.ints[list].push_back(99); }, "a number more");
      for (std::size_t i = 0; i < right.ints[list].size(); ++i) {
        const bool flag = i == 1 && (std::string(right.op) == "sort" || std::string(right.op) == "cumulative");
        if (flag) continue;
        refused([=](Form& form) { form.ints[list][i] = 99; }, "a large number");
        refused([=](Form& form) { form.ints[list][i] = -2; }, "a negative number");
        refused([=](Form& form) { form.ints[list][i] = INT64_MAX; }, "the largest number");
        refused([=](Form& form) { form.ints[list][i] = INT64_MIN; }, "the smallest number");
      }
    }
    refused([](Form& form) { form.outputs[0].shape.clear(); }, "another rank");
    refused([](Form& form) { form.outputs.push_back({kFloat, {4, 6}}); }, "an output more");
    refused([](Form& form) { form.outputs.clear(); }, "no output");
    refused([](Form& form) { form.inputs.push_back({Dtype::kInt8, {3}}); }, "an input more");
    if (!right.inputs.empty()) refused([](Form& form) { form.inputs.pop_back(); }, "an input less");
    if (!right.texts.empty()) refused([](Form& form) { form.texts = {"nonsense"}; }, "another kind");
  }
}

// Lowerings divide by what there is.
void operationsHaveElements() {
  for (const Form& right : forms()) {
    for (std::size_t i = 0; i < right.inputs.size() + right.outputs.size(); ++i) {
      Form form = right;
      ArrayType& type = i < right.inputs.size() ? form.inputs[i] : form.outputs[i - right.inputs.size()];
      type.shape.assign(std::max<std::size_t>(1, type.shape.size()), 0);
      const std::string message = verdictOf(form), op = right.op;
      const bool indices = i == 1 && (op == "gather" || op == "scatter");
      const char* const expected = indices ? "Error: " : "must have elements";
      check::that(message.find(expected) != message.npos, right.op, __FILE__, __LINE__, message);
    }
  }
}

void attributesAreFound() {
  Instruction call = Builder::instruction("custom_call", {}, {}, {}, {"snnjax_target", "k:s64=7", "mode:string=a=b:c"});
  CHECK_EQUAL(attribute(call, "k"), std::string("7"));
  CHECK_EQUAL(attribute(call, "mode"), std::string("a=b:c"));
  CHECK_THROWS(attribute(call, "missing"), "must have the attribute \"missing\"");
}

}  // namespace

int main() {
  for (const auto test :
       {aPlanIsRead, everyPartIsMissed, hostileNumbersAreRefused, blocksAreNotTooDeep, sensePlansMake,
        arraysThatAreAbsurdlyLargeAreRefused, groupsAreAsManyAsTheirMembers, elementwiseProgramsAreChecked,
        operationsAreChecked, operationsHaveElements, attributesAreFound}) {
    const std::string error = check::messageOf(test);
    check::that(error.empty(), "no other exception", __FILE__, __LINE__, error);
  }
  return check::failures == 0 ? 0 : 1;
}
