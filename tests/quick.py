"""How JAX and XLA compile faster, for programs that compile far more than they compute."""

import importlib.metadata

# The emitters take time, and so does more than one LLVM module for a program. Versions that do not know a flag abort.
XLA_FLAGS = (
    "--xla_cpu_use_fusion_emitters=false --xla_cpu_parallel_codegen_split_count=1"
    if importlib.metadata.version("jaxlib").startswith("0.10.")
    else ""
)
