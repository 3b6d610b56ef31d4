"""How JAX and XLA compile faster, for programs that compile far more than they compute."""

import importlib.metadata
import types

# The emitters take time, and so does more than one LLVM module for a program. Versions that do not know a flag abort.
XLA_FLAGS = (
    "--xla_cpu_use_fusion_emitters=false --xla_cpu_parallel_codegen_split_count=1"
    if importlib.metadata.version("jaxlib").startswith("0.10.")
    else ""
)


def load_few_dialects() -> None:
    """Let JAX lower each program with the dialects that it may use: loading all takes longer than a small program.

    A program that uses another is refused by MLIR, which names it; what MLIR reads loads its dialects by itself. Other
    versions of JAX keep all, as with the flags.
    """
    if not XLA_FLAGS:
        return
    from jax._src.interpreters import mlir  # the flags are read before JAX is imported

    class Context(mlir.JaxIrContext):
        def load_all_available_dialects(self) -> None:
            self.get_dialect_descriptor("func")

    # JAX's own function, with this class.
    names = {**vars(mlir), "JaxIrContext": Context}
    mlir.make_ir_context = types.FunctionType(mlir.make_ir_context.__code__, names)
