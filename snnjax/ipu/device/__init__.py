"""The platform ``ipu`` of JAX, as far as it needs snnjax: its library, what the plugin calls, which own ops it takes.

`snnjax_jax_plugin`, which an installation has beside snnjax, makes it known to JAX.
"""

PLATFORM = "ipu"
