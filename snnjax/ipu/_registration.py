"""The platform ``ipu`` of JAX: `snnjax_jax_plugin`, which an installation has beside snnjax, makes it known."""

PLATFORM = "ipu"
