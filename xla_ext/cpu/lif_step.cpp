// The targets of `lif_step`: one step of leaky integrate-and-fire neurons, dense, and its backward pass.
#include "operand_rows.hpp"

namespace snnjax {
namespace {

ffi::Error lifStep(ffi::ThreadPool pool, ffi::RemainingArgs operands, ffi::RemainingRets results,
                   ffi::Dictionary attributes) {
  return guarded("lif_step", [&] {
    static_cast<void>(pool), static_cast<void>(operands), static_cast<void>(results), static_cast<void>(attributes);
  });
}

ffi::Error lifStepBackward(ffi::ThreadPool pool, ffi::RemainingArgs operands, ffi::RemainingRets results,
                           ffi::Dictionary attributes) {
  return guarded("lif_step", [&] {
    static_cast<void>(pool), static_cast<void>(operands), static_cast<void>(results), static_cast<void>(attributes);
  });
}

}  // namespace
}  // namespace snnjax

XLA_FFI_DEFINE_HANDLER_SYMBOL(
    snnjax_lif_step, snnjax::lifStep,
    xla::ffi::Ffi::Bind().Ctx<xla::ffi::ThreadPool>().RemainingArgs().RemainingRets().Attrs());
XLA_FFI_DEFINE_HANDLER_SYMBOL(
    snnjax_lif_step_backward, snnjax::lifStepBackward,
    xla::ffi::Ffi::Bind().Ctx<xla::ffi::ThreadPool>().RemainingArgs().RemainingRets().Attrs());
