"""The configuration of the IPU Model's tests: they need its library, which is built if there is a compiler."""

import jax
import pytest
import snnjax_jax_plugin

from snnjax.ipu.device import PLATFORM, library


@pytest.fixture
def model() -> None:
    """Skips where the library is missing; tests/ipu/device/test_library.py holds that there is a reason."""
    if sentence := library.missing():
        pytest.skip(sentence)


@pytest.fixture
def ipus(model: None) -> list[jax.Device]:
    """The IPUs that tests/conftest.py set up: small, and alike."""
    try:
        return jax.devices(PLATFORM)
    except RuntimeError:
        snnjax_jax_plugin.make_client()  # fails with the reason
        raise
