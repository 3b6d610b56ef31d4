"""The command that runs JAX's tests on the modelled IPU, on tests that the test writes."""

import os
import unittest

import numpy as np
import pytest

from tests.ipu import conformance

CASES = """
import os, unittest
import numpy as np

class Cases(unittest.TestCase):
  def test_passes(self):
    pass
  def test_is_skipped(self):
    raise unittest.SkipTest("not here")
  def test_is_refused(self):
    raise RuntimeError("UNIMPLEMENTED: sort: `operand` must be real, got complex64. Sort its parts.")
  def test_is_wrong(self):
    np.testing.assert_allclose(1.0, 2.0)
  def test_fails(self):
    raise KeyError("x")
  def test_dies(self):
    os._exit(9)
"""


def test_every_outcome_is_counted_and_a_dead_process_is_followed(tmp_path, capsys):
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "few_test.py").write_text(CASES)
    (tmp_path / "tests" / "broken_test.py").write_text("import nothing_of_this_name")
    assert conformance.main([str(tmp_path), "--out", str(tmp_path / "out")]) == 1
    printed = capsys.readouterr().out.splitlines()
    assert printed[0].split(None, 1)[1].endswith("0 wrong, 0 other error, 1 crash or hang")  # broken_test
    few = next(line for line in printed if line.startswith("few_test"))
    assert few.split(None, 1)[1] == "1 pass, 1 skipped, 1 refused, 1 wrong, 1 other error, 1 crash or hang"
    assert any("crash or hang: tests/few_test.py::Cases::test_dies" in line for line in printed)
    assert any("other error: tests/few_test.py::Cases::test_fails: KeyError: 'x'" in line for line in printed)


def test_a_folder_without_tests_is_refused(tmp_path, capsys):
    with pytest.raises(SystemExit):
        conformance.main([str(tmp_path), "--out", str(tmp_path / "out")])
    assert "must hold tests/*_test.py, got none. Pass a checkout of JAX." in capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (None, conformance.PASSED),
        (unittest.SkipTest("no"), conformance.SKIPPED),
        (RuntimeError("UNIMPLEMENTED: fft: `kind` must be RFFT, got FFT."), conformance.REFUSED),
        (
            NotImplementedError("debug_print: `ordered` must be False, got True. Leave it out."),
            conformance.REFUSED,
        ),
        (
            RuntimeError(
                "RESOURCE_EXHAUSTED: Engine: `graph` must fit in 638976 bytes on each tile, got 700000. Use more."
            ),
            conformance.REFUSED,
        ),
        (RuntimeError("RESOURCE_EXHAUSTED: out of memory"), conformance.OTHER),
        (NotImplementedError("not yet"), conformance.OTHER),
        (ValueError("unimplemented"), conformance.OTHER),
        (AssertionError(""), conformance.OTHER),
    ],
)
def test_outcome_of_an_error(error, expected):
    assert conformance.outcome_of(error)[0] == expected


def test_numbers_that_differ_are_wrong():
    with pytest.raises(AssertionError) as caught:
        np.testing.assert_array_equal(np.arange(3), np.ones(3))
    assert conformance.outcome_of(caught.value)[0] == conformance.WRONG
    assert os.linesep not in conformance.outcome_of(caught.value)[1]
