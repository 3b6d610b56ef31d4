"""What the tests of the IPU Model have in common: they need its library, which is built where there is a compiler."""

import pytest

from snnjax.ipu import _model_library


@pytest.fixture
def model() -> None:
    """Skips where the library is missing; tests/ipu/test_library.py holds that there is a reason."""
    if sentence := _model_library.missing():
        pytest.skip(sentence)
