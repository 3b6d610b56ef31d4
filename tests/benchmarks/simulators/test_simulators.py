"""Circuits run in snnjax as in the measurement, and statistics are those that a reader can count."""

import sys

import numpy as np

from tests.benchmarks.simulators import __main__ as simulators
from tests.benchmarks.simulators import circuits, in_snnjax, reference
from tests.benchmarks.simulators.circuits import Measured, Run


def test_measurement_writes_a_row(tmp_path):
    simulators.main(
        ["--quick", "--rounds", "1", "--only", "COBA", "--snnjax", sys.prefix, "--out", str(tmp_path)]
    )
    assert (tmp_path / "simulators.md").read_text().splitlines()[2].startswith("| COBA 200 | snnjax | ")
    assert (tmp_path / "simulators.json").exists()


def test_column_has_the_rates_of_its_spikes():
    found = in_snnjax.measure(Run(circuits.microcircuit, 0.02, 0.3, 0.2, spikes=True))
    assert found.spikes is not None
    own = reference.statistics(circuits.microcircuit(0.02), found.spikes, 0.3)
    for name, rate in found.rates.items():
        np.testing.assert_allclose(own["rates"][name].mean(), rate, rtol=1e-6)
    assert 0.5 < own["rates"]["L4E"].mean() < 15.0  # published: 4.4


def test_table_compares_cpu_times():
    runs = {
        name: [Measured(1.0, 1.0, cpu, cpu, {"E": 5.0})] for name, cpu in (("snnjax", 0.5), ("NEST", 2.0))
    }
    *_, own, other = simulators.as_markdown({"CUBA": runs}).splitlines()
    assert own == "| CUBA | snnjax | 0.500 s | 0.500 s |  | 1.00 s | 1.00 s | 5.0 |"
    assert other == "| CUBA | NEST | 2.000 s | 2.000 s | 4.0 | 1.00 s | 1.00 s | 5.0 |"


def test_statistics_of_few_spikes():
    circuit = circuits.coba(5)  # four neurons excite
    times = np.array([1.0, 3.0, 5.0, 9.0, 1.5, 3.5, 5.5, 9.5])  # two neurons spike in the same bins
    found = reference.statistics(circuit, (times, np.repeat([0, 3], 4)), 0.01)
    assert found["rates"]["E"].tolist() == [400.0, 0.0, 0.0, 400.0]
    np.testing.assert_allclose(found["variation"]["E"], [np.std([2, 2, 4]) / np.mean([2, 2, 4])] * 2)
    np.testing.assert_allclose(found["correlation"]["E"], [1.0])
    one = {
        name: {"E": np.arange(4.0) + shift} for name, shift in zip(reference.NAMES, (0, 0, 0), strict=True)
    }
    other = {name: {"E": np.arange(4.0) + 2} for name in reference.NAMES}
    assert [own.tolist() for own in reference.distances([(one, one), (one, other)]).values()] == [
        [0.0, 0.5]
    ] * 3
