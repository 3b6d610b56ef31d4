"""The platform ``ipu`` of JAX, which `snnjax_jax_plugin` registers when JAX looks for devices.

``SNNJAX_IPU_DEVICES`` says how many IPUs there are (1), ``SNNJAX_IPU_VERSION`` which ones (mk1, mk2, bow or c600),
``SNNJAX_IPU_TILES`` how many tiles of each are used (all). CPU stays the default, and whatever goes wrong here leaves
other programs alone.
"""

import os
import warnings
from typing import Any

PLATFORM = "ipu"
_MAX_DEVICES = 64


def initialize() -> None:
    """Tell JAX of the platform, or warn; nothing is loaded before JAX sets up its devices."""
    try:
        from snnjax.ipu import _jax_private

        if not _jax_private.is_known_platform(PLATFORM):
            _jax_private.register_platform(PLATFORM, make_client)
    except Exception as error:  # a version of JAX that lacks what is private to it
        _warn(f"{type(error).__name__}: {error}".removesuffix("."))


def make_client() -> Any:
    """The client, or an error that JAX keeps for those who ask for the platform."""
    from snnjax.ipu import _jax_private, _model_library, _plugin, lowering

    if sentence := _model_library.not_built():  # as in an editable install before `make kernels`
        raise RuntimeError(sentence)
    try:
        options = client_options()
        _plugin.library()
        lowering.register_rules()
        return _jax_private.make_client(PLATFORM, _model_library.path(), options)
    except Exception as error:
        message = str(error).removesuffix(".")
        _warn(message)
        raise RuntimeError(message) from error


def _warn(reason: str) -> None:
    warnings.warn(f"The platform ipu is not there. {reason}.", RuntimeWarning, stacklevel=3)


def client_options() -> dict[str, str | int]:
    """What the environment says of the IPUs; raises ValueError for what they cannot be."""
    options: dict[str, str | int] = {"num_devices": _number("SNNJAX_IPU_DEVICES", 1, _MAX_DEVICES)}
    options["num_tiles"] = _number("SNNJAX_IPU_TILES", 0)
    if version := os.environ.get("SNNJAX_IPU_VERSION"):
        options["version"] = version
    return options


def _number(variable: str, default: int, most: int | None = None) -> int:
    text = os.environ.get(variable)
    if not text:
        return default
    if not (text.isascii() and text.isdigit()) or int(text) < 1 or (most is not None and int(text) > most):
        upper = f" and at most {most}" if most else ""
        raise ValueError(
            f"ipu: `{variable}` must be an integer of at least 1{upper}, got {text!r}. Unset it for {default or 'all'}"
        )
    return int(text)
