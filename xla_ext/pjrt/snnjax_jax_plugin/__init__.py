"""The JAX platform ``ipu``, which JAX looks up by the entry point `jax_plugins` when a program asks for devices.

Every JAX program of an environment with snnjax in it pays for what happens here. Installed this is therefore a package
beside snnjax (`wheel.packages`), which imports snnjax only when something is lowered or compiled for the platform; what
goes wrong there, in an environment that it was not made for, cannot stop a program that uses JAX alone. CPU stays the
default.

``SNNJAX_IPU_DEVICES`` says how many IPUs there are (1), ``SNNJAX_IPU_VERSION`` which ones (mk1, mk2, bow or c600),
``SNNJAX_IPU_TILES`` how many tiles of each are used (all).
"""

import warnings
from typing import Any

from snnjax_jax_plugin._wire import PLATFORM


def initialize() -> None:
    """Register the platform and its lowering rules with JAX, or warn; once, and cheaply."""
    try:
        from snnjax_jax_plugin import _jax_private, _rules

        if not _jax_private.is_known_platform(PLATFORM):
            _jax_private.register_platform(PLATFORM, make_client)
            _jax_private.leave_out_of_cache(PLATFORM)
            _rules.register(PLATFORM)
    except Exception as error:  # a version of JAX that lacks what is private to it
        _warn(_described(error))


def snnjax_kernel(target: Any) -> Any:
    """The codelets of a target, which snnjax asks for when it lowers one of its ops for the platform."""
    from snnjax.ipu.device import own_ops

    return own_ops.kernel(target)


def snnjax_reference(target: Any) -> Any:
    """The form of a target's reference that is fastest there, or None for the usual one."""
    from snnjax.ipu.device import own_ops

    return own_ops.reference(target)


def snnjax_note() -> str:
    """The last line of `network.paths` where an IPU is the default device."""
    from snnjax.ipu.device import own_ops

    return own_ops.NOTE


def make_client() -> Any:
    """The client, or an error that JAX raises when the platform is requested."""
    from snnjax_jax_plugin import _jax_private, _library, _wire

    try:
        _library.connect()
        return _jax_private.make_client(PLATFORM, _wire.path(), _library.client_options())
    except Exception as error:
        reason = _described(error)
        if not isinstance(error, _wire.NotBuilt):  # as in an editable install before `make kernels`
            _warn(reason)
        raise RuntimeError(reason) from error


def _described(error: Exception) -> str:
    """What an error says; of one that is not ours, which it is as well."""
    sentence = str(error).removesuffix(".")
    return sentence if isinstance(error, RuntimeError | ValueError) else f"{type(error).__name__}: {sentence}"


def _warn(reason: str) -> None:
    warnings.warn(f"The platform ipu is not there. {reason}.", RuntimeWarning, stacklevel=3)
