"""The platform ``ipu`` of JAX: `snnjax_jax_plugin`, which an installation has beside snnjax, makes it known."""

from snnjax.ipu import _own_ops

PLATFORM = "ipu"


def initialize() -> None:
    """Let JAX know the platform before it looks for its plugins, so that it has rules for the library's own ops."""
    try:
        import snnjax_jax_plugin
    except ModuleNotFoundError:  # snnjax is on the path, not installed
        return
    snnjax_jax_plugin.initialize()
    if snnjax_jax_plugin.is_known():
        _own_ops.platform_is_there(PLATFORM)
