// Any plan as one custom operation of a framework on an installed SDK: `Build` adds what the plan computes to the
// framework's graph, `Build_grad` its gradients. NOT RUN ON HARDWARE, nor compiled by an SDK: tests/run.cpp loads the
// library on the IPU Model as a framework would.
//
// The interface is that of the API level 5 (release notes of Graphcore's TensorFlow, 2.3), as the framework declares
// what it calls: tensorflow/compiler/plugin/poplar/driver/ops/custom_ops/poputil/user_op.cc of
// github.com/graphcore/tensorflow. JAX on IPU looks for the same functions (ipu_custom_primitive.hpp of
// github.com/graphcore-research/jax-experimental).
#include <dlfcn.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <map>
#include <poplar/Graph.hpp>
#include <poplar/Program.hpp>
#include <poplin/codelets.hpp>
#include <popops/codelets.hpp>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "executor/plan/plan.hpp"
#include "executor/plan_lowering.hpp"

namespace snnjax::custom_op {
namespace {

using Tensors = std::vector<poplar::Tensor>;

[[noreturn]] void refuse(const std::string& argument, const std::string& expected, const std::string& actual) {
  throw Error(ErrorCode::kInvalidArgument, "custom_op: `" + argument + "` must " + expected + ", got " + actual +
                                               ". Make them again with snnjax.ipu.custom_op.");
}

// Base64 without line breaks (RFC 4648): attributes are text in every framework.
std::vector<std::byte> fromBase64(const std::string& text) {
  static constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  constexpr unsigned kDigitBits = 6, kByteBits = 8;
  std::vector<std::byte> bytes;
  unsigned bits = 0, count = 0;
  for (const char each : std::string_view(text).substr(0, text.find('='))) {
    const std::size_t digit = kDigits.find(each);
    if (digit == kDigits.npos)
      refuse("attributes", "be a plan in base64", "the character '" + std::string(1, each) + "'");
    bits = bits << kDigitBits | static_cast<unsigned>(digit);
    count += kDigitBits;
    if (count < kByteBits) continue;
    count -= kByteBits;
    bytes.push_back(static_cast<std::byte>(bits >> count & 0xFFU));
  }
  return bytes;
}

// Adds the codelets of poplar_kernels, stored beside this library, and of the libraries that builders and executor
// call, unless the graph has them.
void addCodelets(poplar::Graph& graph) {
  Dl_info library = {};
  dladdr(reinterpret_cast<const void*>(&addCodelets), &library);
  const std::string codelets = std::filesystem::path(library.dli_fname).parent_path() / "snnjax.gp";
  poplar::Graph scratch(graph.getTarget());
  scratch.addCodelets(codelets);
  executor::checkCodelets(scratch);
  graph.addCodelets(codelets);
  poplin::addCodelets(graph);
  popops::addCodelets(graph);
}

executor::Plan readAttributes(const std::string& attributes, std::size_t num_arguments) {
  executor::Plan plan = executor::readPlan(fromBase64(attributes));
  plan.vendor_products = true;
  if (plan.num_partitions != 1) refuse("attributes", "be for one IPU", std::to_string(plan.num_partitions));
  const std::size_t parameters = plan.main.parameters.size();
  if (num_arguments == parameters) return plan;
  refuse("inputs", "number " + std::to_string(parameters), std::to_string(num_arguments));
}

std::string describe(const poplar::Type& type, const std::vector<std::size_t>& shape) {
  std::ostringstream text;
  text << type << "[";
  for (std::size_t i = 0; i < shape.size(); ++i) text << (i > 0 ? "," : "") << shape[i];
  text << "]";
  return text.str();
}

// Arguments are copied to the plan's parameters, so the framework's tensors stay unchanged.
poplar::program::Copy bring(const executor::Plan& plan, std::size_t number, const poplar::Tensor& from,
                            const poplar::Tensor& to) {
  const executor::ArrayType& type = plan.types[plan.main.parameters[number]];
  const poplar::Type element = executor::poplarType(type.dtype);
  if (from.elementType() != element || from.shape() != type.shape) {
    refuse("inputs", "have " + describe(element, type.shape) + " at position " + std::to_string(number),
           describe(from.elementType(), from.shape()));
  }
  return poplar::program::Copy(from, to, false, "argument");
}

struct Built {
  poplar::program::Sequence program;
  Tensors results;
};

Built build(poplar::Graph& graph, const Tensors& arguments, const std::string& attributes, const std::string& name) {
  const executor::Plan plan = readAttributes(attributes, arguments.size());
  addCodelets(graph);
  executor::PlanLowering lowering(graph, plan);
  const poplar::program::Sequence main = lowering.lowerMain();
  if (!lowering.callbacks().empty()) refuse("attributes", "call nothing on the host", "callbacks");
  Built built{poplar::program::Sequence({}, name), {}};
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    built.program.add(bring(plan, i, arguments[i], lowering.parameter(i)));
  }
  built.program.add(main);
  for (std::size_t i = 0; i < plan.main.results.size(); ++i) built.results.push_back(lowering.result(i));
  return built;
}

bool isDifferentiable(const poplar::Tensor& tensor) {
  return tensor.elementType() == poplar::FLOAT || tensor.elementType() == poplar::HALF;
}

}  // namespace
}  // namespace snnjax::custom_op

using snnjax::custom_op::Tensors;

extern "C" {

extern const std::int32_t custom_op_api_level;
const std::int32_t custom_op_api_level = 5;

// No state, and one program for equal attributes: the framework may build one for several calls. It places the inputs,
// and nothing overwrites them.
void Build_metadata(std::vector<std::int64_t>& allocating_indices,
                    std::vector<std::int64_t>& replica_identical_output_indices,
                    std::map<std::int64_t, std::int64_t>& input_to_output_tensor_aliasing, bool& is_elementwise,
                    bool& is_stateless, bool& is_hashable, std::uint32_t /*num_inputs*/) {
  allocating_indices.clear();
  replica_identical_output_indices.clear();
  input_to_output_tensor_aliasing.clear();
  is_elementwise = false;
  is_stateless = is_hashable = true;
}

void Build_grad_metadata(std::vector<std::int64_t>& allocating_indices,
                         std::vector<std::int64_t>& replica_identical_output_indices,
                         std::map<std::int64_t, std::int64_t>& input_to_output_tensor_aliasing, bool& is_elementwise,
                         bool& is_stateless, bool& is_hashable, std::uint32_t num_inputs) {
  Build_metadata(allocating_indices, replica_identical_output_indices, input_to_output_tensor_aliasing, is_elementwise,
                 is_stateless, is_hashable, num_inputs);
}

poplar::program::Program Build(poplar::Graph& graph, const std::vector<poplar::Tensor>& inputs,
                               std::vector<poplar::Tensor>& outputs, const std::string& attributes,
                               const std::string& debug_prefix) {
  snnjax::custom_op::Built built = snnjax::custom_op::build(graph, inputs, attributes, debug_prefix);
  outputs = std::move(built.results);
  return built.program;
}

// All gradients at once (`separate_gradients=False`): for each input a tensor, not valid if it has integers. The plan
// takes the inputs and the gradients of those outputs that are floating-point numbers, and runs the forward pass again.
poplar::program::Program Build_grad(poplar::Graph& graph, int /*input_grad_index*/,
                                    const std::vector<poplar::Tensor>& gradients,
                                    const std::vector<poplar::Tensor>& forward_inputs,
                                    const std::vector<poplar::Tensor>& forward_outputs,
                                    std::vector<poplar::Tensor>& outputs, const std::string& attributes,
                                    const std::string& debug_prefix) {
  namespace own = snnjax::custom_op;
  Tensors arguments = forward_inputs;
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    if (own::isDifferentiable(forward_outputs.at(i))) arguments.push_back(gradients[i]);
  }
  const own::Built built = own::build(graph, arguments, attributes, debug_prefix);
  outputs.assign(forward_inputs.size(), poplar::Tensor());
  auto next = built.results.begin();
  for (std::size_t i = 0; i < outputs.size() && next != built.results.end(); ++i) {
    if (own::isDifferentiable(forward_inputs[i])) outputs[i] = *next++;
  }
  return built.program;
}

}  // extern "C"
