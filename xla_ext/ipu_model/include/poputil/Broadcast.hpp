// NumPy's rules of broadcasting: shapes are aligned at the last dimension, a dimension of 1 is repeated.
#pragma once

#include <poplar/Tensor.hpp>
#include <vector>

namespace poputil {

// Each argument becomes a view with the common shape; throws poplibs_error where there is none.
void broadcastToMatch(poplar::Tensor& a, const std::vector<std::size_t>& shape);
void broadcastToMatch(poplar::Tensor& a, poplar::Tensor& b);
void broadcastToMatch(poplar::Tensor& a, poplar::Tensor& b, poplar::Tensor& c);

bool canBroadcastToMatch(const poplar::Tensor& a, const poplar::Tensor& b);

}  // namespace poputil
