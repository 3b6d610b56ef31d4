"""How JAX compiles faster, for programs that compile far more than they compute."""

import importlib.metadata
import threading

# The emitters take time, and so does more than one LLVM module for a program. Versions that do not know a flag abort.
XLA_FLAGS = (
    "--xla_cpu_use_fusion_emitters=false --xla_cpu_parallel_codegen_split_count=1"
    if importlib.metadata.version("jaxlib").startswith("0.10.")
    else ""
)


def reuse_contexts(uses: int = 16) -> None:
    """Let JAX lower so many programs in one MLIR context: loading its dialects takes longer than a small program.

    What a program adds to a context stays there until it is freed, so each serves for a while, and one thread only.
    """
    from jax._src.interpreters import mlir  # the flags are read before JAX is imported

    original, kept = mlir.ModuleContext.__init__, threading.local()

    def begin(self, *, context=None, **given):
        if context is None:
            if not getattr(kept, "contexts", None):
                kept.contexts = [mlir.make_ir_context()] * uses
            context = kept.contexts.pop()
        original(self, context=context, **given)

    mlir.ModuleContext.__init__ = begin
