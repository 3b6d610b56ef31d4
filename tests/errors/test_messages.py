"""Every error message in the source is one sentence, with one hint; `make messages` prints the list of them."""

import pytest

from snnjax import _check
from tests.errors.messages import checks, problems

GOOD = (
    "spike_matmul: `weights` must have shape [2, any], got [3, 2]. Pass one row of weights for every neuron."
)
BAD = {
    "no form": "spike_matmul: weights are wrong",
    "no hint": GOOD.split(". ")[0],
    "no hint, but a full stop": GOOD.split(". ")[0] + ".",
    "two hints": GOOD + " Transpose them.",
    "a private function": GOOD.replace("spike_matmul", "spike_conv_rows"),
    "a private method": GOOD.replace("spike_matmul", "SparseSpikes._checked"),
    "a plural of one": GOOD.replace("[2, any]", "1 pairs of integers"),
    "a wrong article": GOOD.replace("[3, 2]", "a integer"),
    "another wrong article": GOOD.replace("[3, 2]", "an tuple"),
    "a word twice": GOOD.replace("Pass", "Pass pass pass"),
    "words as a tuple": GOOD.replace("[2, any]", "(one for the length,)"),
    "two spaces": GOOD.replace("must have", "must  have"),
    "two full stops": GOOD + ".",
    "an address": GOOD.replace("[3, 2]", "<object object at 0x7f85005ca8e0>"),
    "a class": GOOD.replace("[3, 2]", "<class 'jax.numpy.float16'>"),
}


def test_all_messages_in_the_source_are_sentences() -> None:
    messages = list(checks())
    found = [(problems(each.message), each) for each in messages]
    assert not [each for each in found if each[0]]
    assert len(messages) > 300


@pytest.mark.parametrize("case", BAD)
def test_wrong_message_is_found(case: str) -> None:
    assert problems(GOOD) == []
    assert problems(BAD[case])


def test_quoted_text_may_hold_anything() -> None:
    assert problems(GOOD.replace("[3, 2]", "'an integer.. twice twice, 1 pairs'")) == []


def test_message_that_a_test_provokes_is_checked() -> None:
    """By `watch` in tests/conftest.py, for what is known only then."""
    with pytest.raises(AssertionError, match="the wrong article"):
        _check.fail(BAD["a wrong article"])
