"""What JAX imports to learn of the platform ``ipu``: the entry point `jax_plugins`.

Installed it is a package beside snnjax (`wheel.packages`), so that nothing that goes wrong while snnjax is imported, in
an environment that it was not made for, can stop a program that only uses JAX.
"""

import warnings


def initialize() -> None:
    """Register the platform, or warn once."""
    try:
        from snnjax.ipu import _registration

        _registration.initialize()
    except Exception as error:
        reason = f"{type(error).__name__}: {error}".removesuffix(".")
        warnings.warn(f"The platform ipu is not there. {reason}.", RuntimeWarning, stacklevel=2)
