"""Every module here spends most of its time compiling."""

import pytest


@pytest.fixture(scope="module", autouse=True)
def fast(compiles_fast: None) -> None:
    """Programs compile without most optimisations."""
