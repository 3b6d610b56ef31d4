"""Plots: what is drawn where, from dense spikes and from lists, and messages."""

import jax.numpy as jnp
import numpy as np
import pytest
from matplotlib import pyplot
from matplotlib.colors import to_rgba

from snnjax import NetworkOutput, SparseSpikes, plot
from tests.errors.refusals import refusals

DENSE = jnp.zeros((5, 4)).at[jnp.array([0, 2, 4]), jnp.array([3, 1, 1])].set(1.0)
LINES = [
    {
        "epoch": epoch,
        "train_loss": 1 / epoch,
        "validation_loss": 1.1 / epoch,
        "train_accuracy": 0.9,
        "validation_accuracy": accuracy,
        "activity": [0.03, 0.05],
        "dropped_share": [0.0, 0.01],
    }
    for epoch, accuracy in ((1, 0.7), (2, 0.875), (3, 0.8))
]


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    pyplot.close("all")


def points(axes) -> list[tuple[float, float]]:
    return sorted(map(tuple, np.asarray(axes.collections[0].get_offsets()).tolist()))


@pytest.mark.parametrize("sparse", [False, True])
def test_raster_has_a_dot_for_every_spike(sparse: bool) -> None:
    # a list with room for gradient-only entries, which are not spikes
    spikes = SparseSpikes.from_dense(DENSE, capacity=3) if sparse else DENSE
    axes = plot.raster(spikes, title="some")
    assert points(axes) == [(0.0, 3.0), (2.0, 1.0), (4.0, 1.0)]
    assert (axes.get_xlim(), axes.get_ylim()) == ((-0.5, 4.5), (-0.5, 3.5))
    assert (axes.get_xlabel(), axes.get_ylabel(), axes.get_title(loc="left")) == (
        "time step",
        "neuron",
        "some",
    )


def test_raster_leaves_out_entries_listed_for_their_gradient() -> None:
    ids, values = jnp.array([[0, 2]]), jnp.array([[1.0, 0.0]])
    spikes = SparseSpikes(ids, values, jnp.array([1]), jnp.array([2]), jnp.array([0]), 4)
    assert points(plot.raster(spikes)) == [(0.0, 0.0)]


def test_raster_draws_into_given_axes() -> None:
    _, axes = pyplot.subplots()
    assert plot.raster(DENSE, axes) is axes


def output_of(output, activity=None, dropped=None, recorded=None) -> NetworkOutput:
    return NetworkOutput(output, activity or {}, dropped or {}, {}, recorded or {}, {})


def test_sample_draws_inputs_layers_and_readout() -> None:
    both = jnp.stack([DENSE, DENSE], axis=1)
    recorded = {
        "hidden/neuron": both.reshape(5, 2, 2, 2),
        "lif_0": SparseSpikes.from_dense(both, 2),
        "hidden/connection": both,
    }
    activity = {"hidden/neuron": both[0], "lif_0": both[0]}
    output = output_of(jnp.ones((5, 2, 3)), activity, recorded=recorded)
    figure = plot.sample(SparseSpikes.from_dense(both, 2), output, index=1, label=2)
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert titles == ["input, 4 neurons", "hidden, 4 neurons", "lif_0, 4 neurons", "readout, 3 classes"]
    assert points(figure.axes[1]) == points(figure.axes[2]) == [(0.0, 3.0), (2.0, 1.0), (4.0, 1.0)]
    assert len(figure.axes[-1].lines) == 3
    assert [text.get_text() for text in figure.axes[-1].get_legend().get_texts()] == ["class 2, the label"]


def test_sample_draws_several_inputs_and_readouts_by_name() -> None:
    both = jnp.stack([DENSE, DENSE], axis=1)
    output = output_of(
        {"main": jnp.ones((5, 2, 3)), "spiking": SparseSpikes.from_dense(both, 2)},
        {"lif_0": both[0]},
        recorded={"lif_0": both},
    )
    figure = plot.sample({"left": both, "right": both}, output)
    titles = [axes.get_title(loc="left").split(",")[0] for axes in figure.axes]
    assert titles == ["left", "right", "lif_0", "main", "spiking"]


def test_membranes_has_a_lane_for_each_neuron_and_a_line_for_each_spike() -> None:
    membranes = jnp.array([[0.5, -1.0, 0.2, 0.0], [1.5, 0.0, 0.4, 0.0], [0.1, 1.2, 0.6, 0.0]])
    spikes = membranes > 1
    ax = plot.membranes(membranes, spikes, neurons=[0, 1], threshold=1.0, title="some")
    bases = ax.get_yticks()
    assert [label.get_text() for label in ax.get_yticklabels()] == ["0", "1"]
    assert ax.get_xlim() == (-0.5, 2.5) and ax.get_title(loc="left") == "some"
    curves = [line for line in ax.lines if len(line.get_xdata()) == 3]
    for base, curve, neuron in zip(bases, curves, (0, 1), strict=True):
        np.testing.assert_allclose(curve.get_ydata() - base, membranes[:, neuron], atol=1e-6)
    marks = [path.vertices for each in ax.collections for path in each.get_paths()]
    assert [mark[0].tolist() for mark in marks] == [[1.0, bases[0] + 1], [2.0, bases[1] + 1]]
    # No lane overlaps the next one.
    assert bases[0] + 1.5 <= bases[1] - 1.0


def test_membranes_takes_lists_and_draws_the_first_eight_neurons() -> None:
    ax = plot.membranes(jnp.zeros((5, 12)), SparseSpikes.from_dense(jnp.zeros((5, 12)), 2))
    assert len(ax.get_yticks()) == 8


def test_animate_covers_what_is_still_to_come() -> None:
    both = DENSE[:, None]
    output = output_of(jnp.ones((5, 1, 3)), {"lif_0": both[0]}, recorded={"lif_0": both})
    animation = plot.animate(both, output, steps_per_second=4)
    assert len(list(animation.new_frame_seq())) == 5
    for step in (0, 4):
        artists = animation._func(step)
        covers, lines = artists[:3], artists[3:]
        assert [cover.get_x() for cover in covers] == [step + 0.5] * 3
        assert [cover.get_x() + cover.get_width() for cover in covers] == [4.5] * 3
        assert [line.get_xdata() for line in lines] == [[step + 0.5] * 2] * 3
    animation.pause()
    animation._draw_was_started = True  # it is not shown, which matplotlib warns of


def test_curves_mark_the_best_epoch_on_validation_data() -> None:
    left, right = plot.curves(LINES).axes
    assert [text.get_text() for text in left.texts] == ["87.5 %"]
    assert left.lines[-1].get_xdata() == [2]
    assert (left.get_ylabel(), right.get_ylabel()) == ("accuracy (%)", "loss (nats per sample)")


def test_activity_draws_percent_by_layer_and_the_bound() -> None:
    left, right = plot.activity(LINES, bound=0.04).axes
    assert [line.get_label() for line in left.lines] == ["layer 1", "layer 2", "bound"]
    np.testing.assert_allclose(left.lines[1].get_ydata(), [5.0, 5.0, 5.0])
    np.testing.assert_allclose(right.lines[1].get_ydata(), [1.0, 1.0, 1.0])


def test_confusion_shows_counts_and_the_accuracy_of_each_class() -> None:
    (ax,) = plot.confusion(np.array([[3, 1, 0], [0, 2, 0], [0, 0, 0]]), ["cat", "dog", "owl"]).axes
    assert [label.get_text() for label in ax.get_yticklabels()] == ["cat, 75 %", "dog, 100 %", "owl"]
    assert {(text.get_position(), text.get_text()) for text in ax.texts} == {
        ((0, 0), "3"),
        ((1, 0), "1"),
        ((1, 1), "2"),
    }
    np.testing.assert_array_equal(ax.images[0].get_array(), [[0.75, 0.25, 0], [0, 1, 0], [0, 0, 0]])


def test_overview_has_a_bar_a_layer_for_each_share() -> None:
    activity = {
        "hidden/neuron": jnp.array([[0.5, 0.25, 0.0, 0.25], [0.5, 0.25, 0.0, 0.25]]),
        "lif_0": jnp.array([[0.25, 0, 0], [0, 0, 0]]),
    }
    dropped = {"hidden/neuron": jnp.array([2, 0]), "lif_0": jnp.array([0, 0])}
    axes = plot.overview(output_of(jnp.zeros((4, 2, 3)), activity, dropped), jnp.array([4, 2])).axes
    widths = [[bar.get_width() for bar in ax.patches] for ax in axes]
    # Of the first layer's 4 * 1 + 2 * 1 spikes two are dropped.
    np.testing.assert_allclose(widths, [[25, 100 / 24], [100 / 3, 0], [25, 200 / 3]], rtol=1e-6)
    assert [label.get_text() for label in axes[0].get_yticklabels()] == [
        "hidden\n4 neurons",
        "lif_0\n3 neurons",
    ]
    assert [bar.get_facecolor() == to_rgba(plot.RED) for bar in axes[2].patches] == [False, True]


def test_save_writes_a_picture_and_closes_it(tmp_path) -> None:
    figure = plot.curves(LINES[:1])
    plot.save(figure, tmp_path / "curves.png")
    assert (tmp_path / "curves.png").read_bytes().startswith(b"\x89PNG")
    assert not pyplot.fignum_exists(figure.number)


REFUSED = {
    "plot.overview: `output` must be what a network returned, got None. "
    "Pass the first result of network.apply.": lambda: plot.overview(None),
    "plot.overview: `output` must hold at least one sequence, got none. "
    "Run the network on a batch.": lambda: plot.overview(
        output_of(jnp.zeros((4, 0, 3)), {"lif_0": jnp.zeros((0, 5))}, {"lif_0": jnp.zeros(0, int)})
    ),
    "plot.raster: `spikes` must have shape [time, neurons], got [2, 3, 4]. "
    "Choose a sample, for instance spikes[:, 0].": lambda: plot.raster(jnp.zeros((2, 3, 4))),
    "plot.membranes: `membranes` must have shape [time, neurons], got [2, 3, 4]. "
    "Choose a sample, for instance membranes[:, 0].": lambda: plot.membranes(jnp.zeros((2, 3, 4))),
    "plot.membranes: `spikes` must have shape [time, neurons] = [2, 3], got [2, 4]. Take the "
    "spikes of the same neurons and sample.": lambda: plot.membranes(jnp.zeros((2, 3)), jnp.zeros((2, 4))),
    "plot.membranes: `neurons` must be below 3, got 3. Choose others.": lambda: plot.membranes(
        jnp.zeros((2, 3)), neurons=[1, 3]
    ),
    "plot.animate: `steps_per_second` must be above 0, got 0. Try 10.": lambda: plot.animate(
        DENSE, None, steps_per_second=0
    ),
    "plot.sample: `output` must hold the spikes of layers, got none. Run the network "
    'with record="spikes".': lambda: plot.sample(jnp.zeros((2, 1, 4)), output_of(jnp.zeros((2, 1, 3)))),
    "plot.confusion: `names` must hold 2 names, got 1. "
    "Name the classes in the order of their labels.": lambda: plot.confusion(np.eye(2, dtype=int), ["cat"]),
    "plot.curves: `metrics` must hold at least one epoch, got none. Train for an epoch first.": lambda: (
        plot.curves([])
    ),
}
test_wrong_arguments_are_named = refusals(REFUSED)
