"""Tables of error messages, and the test that each call raises the one beside it."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest


def refusals(
    *tables: Mapping[str, Callable[[], Any]], error: type[Exception] = ValueError
) -> Callable[..., None]:
    """A test of each message, word for word; a message that several calls answer with stands in several tables."""
    rows = [row for table in tables for row in table.items()]

    @pytest.mark.parametrize("message, call", rows, ids=[message for message, _ in rows])
    def test(message: str, call: Callable[[], Any]) -> None:
        with pytest.raises(error) as refused:
            call()
        said = str(refused.value)
        assert said == message, said

    return test
