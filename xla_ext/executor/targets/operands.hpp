// Converts between values of a plan and the tensors of builders, which are in blocks of columns and may have other
// element types.
#pragma once

#include <initializer_list>
#include "builders/vertices.hpp"

#include "executor/targets/call.hpp"

namespace snnjax::executor::targets {

using poplar::Tensor;

// Whether a float32 gradient, a result about to be computed, comes to lie in a layout; then its memory is made.
bool isMadeIn(Lowering& lowering, const Blocks& blocks, ValueId result);

// An operand without its groups axis, which has length 1.
Tensor operand(Lowering& lowering, const Value& value);
std::size_t dimension(const Plan& plan, const Value& value, std::size_t axis);

// Fills a tensor of the operand's shape, or one that repeats it along its first dimensions; numbers are converted.
void bring(Lowering& lowering, const Tensor& from, const Tensor& to);

// The same for the rows [rows, neurons] of blocks of columns. What is beside them is 0 from the start: columns to spare
// and rows behind these.
void bringRows(Lowering& lowering, const Tensor& from, const Tensor& blocks, const builders::TileRange& tiles,
               std::size_t rows, std::size_t neurons);

// A result, without its groups axis, in its own type.
void yield(Lowering& lowering, const Value& result, const Tensor& tensor);

// Zeros in all results, for operands without elements.
void yieldZeros(Lowering& lowering, const Instruction& instruction);
// Whether one of the sizes is 0. Their product would wrap around.
bool isAnyEmpty(std::initializer_list<std::size_t> sizes);

// Whether a floating operand is half; else it is float.
bool isHalf(const Plan& plan, const Value& value);
// Whether ids are int32; else they are uint16.
bool isLong(const Plan& plan, const Value& value);

}  // namespace snnjax::executor::targets
