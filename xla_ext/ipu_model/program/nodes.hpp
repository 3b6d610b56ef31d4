// The nodes of programs. A node never changes once a program holds it, so programs share them.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <poplar/DataStream.hpp>
#include <poplar/SyncType.hpp>
#include <poplar/Tensor.hpp>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace ipu_model {

struct ProgramNode;
using Node = std::shared_ptr<const ProgramNode>;

namespace nodes {

struct Sequence {
  std::vector<Node> programs;
};
struct Execute {
  unsigned compute_set;
};
struct Copy {
  poplar::Tensor from, to;
};
struct CrossReplicaCopy {
  poplar::Tensor from, to;
  std::map<unsigned, unsigned> replicas;  // from which to which
};
struct StreamCopy {
  poplar::DataStream stream;
  poplar::Tensor tensor;
  bool to_host;
  bool host_rearranges;  // and not the device, by an exchange
};
struct RemoteCopy {
  poplar::RemoteBuffer buffer;
  poplar::Tensor tensor;
  poplar::Tensor offset;  // which repeats; of no graph: the first
  bool to_host;
};
struct Repeat {
  unsigned count;
  Node body;
};
struct RepeatWhile {
  Node condition;
  poplar::Tensor predicate;
  Node body;
  bool until;  // goes on while the predicate is this
};
struct Switch {  // If, too: case 0 is its false body, everything else the true one
  poplar::Tensor control;
  std::vector<std::pair<std::int32_t, Node>> cases;
  Node otherwise;  // null: an error
};
struct Call {
  unsigned function;
};
struct HostCall {
  unsigned function;
  std::vector<poplar::Tensor> inputs, outputs;
};
struct Sync {
  poplar::SyncType type;
};
struct Print {
  std::string title;
  poplar::Tensor tensor;
  poplar::PrintTensorFmt format;
};
struct Error {
  std::string message;
  poplar::Tensor predicate;  // of no graph: always
  poplar::Tensor printed;    // of no graph: nothing
};
// Reads the clock into a tensor of two words, or subtracts what that tensor holds.
struct CycleStamp {
  poplar::Tensor tensor;
  bool difference;
};

}  // namespace nodes

struct ProgramNode {
  std::string name;
  std::variant<nodes::Sequence, nodes::Execute, nodes::Copy, nodes::CrossReplicaCopy, nodes::StreamCopy,
               nodes::RemoteCopy, nodes::Repeat, nodes::RepeatWhile, nodes::Switch, nodes::Call, nodes::HostCall,
               nodes::Sync, nodes::Print, nodes::Error, nodes::CycleStamp>
      what;
};

}  // namespace ipu_model
