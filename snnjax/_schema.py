"""How the tables of own ops are written: what an array is, and which table belongs to which op.

A table is a module of records, NamedTuples whose fields state the name of an array, its numbers and shape, when it is
there, and whether it has a cotangent; records of static values have plain numbers. ``ROOTS`` are the records that a
target takes or yields, ``STATIC`` those of static values. From the tables come the names under which both travel to the
kernels (`snnjax.ops._kernel_operands`) and, when the libraries are built, the C++ that binds and checks them by these
names (``xla_ext/schema/generate.py``). So this file, what tables share (`snnjax._neuron_table`) and the tables import
nothing but the standard library.
"""

import functools
import hashlib
import typing
from pathlib import Path
from typing import Any, NamedTuple

# The numbers of an array, of which each target knows some types.
NUMBERS = (
    "floats",  # of the dtype of the op: of weights, spikes and output
    "sums",  # in the accumulation dtype
    "membranes",  # recorded: in the accumulation dtype, or their distances to the threshold in bfloat16
    "inputs",  # floats, or spikes as uint8 or bool
    "values",  # of given lists, floats
    "given_ids",  # uint16 or int32
    "ids",  # of lists of a layer, in the smaller of these dtypes that holds them
    "counts",  # int32
    "bits",  # uint8, one bit per neuron
    "flags",  # bool
    "int8",
)

# The length of an axis; in that of a readout, neurons are outputs. "x_or_n" is that of x, or n.
AXES = (
    "steps",
    "steps_or_0",  # no rows if nobody reads them
    "batch",
    "batch_or_0",
    "rows",  # of spikes, whatever axes they have
    "neurons",
    "neurons_or_1",  # one value per neuron, or one for all
    "channels",  # of the pixels of an image
    "pixels",
    "capacity",  # of lists
    "outputs",  # of a product with weights
    "synapses",  # that exist
    "synapses_or_0",
    "synapses_or_1",
    "arrivals",  # the steps of the longest delay
    "arrivals_or_0",
    # Of `simulate`:
    "receptors",  # of each neuron
    "blocks",  # of neurons that one thread steps
    "segments",  # of synapses
    "projections",  # of `connect`
    "columns",  # what is known of each of them
    "cells",  # projections, blocks and senders
    "quantiles",  # of weights
    "late",  # quantiles of delays
    "levels",  # of a table of random counts
    "pair",  # of numbers
    "courses",  # of currents in time
    "events",  # spikes that are given
    "steps_or_1",
    "recorded",  # neurons
    "seen",  # sums of them
    "samples",  # in time
    "watched",  # synapses
    "pending",  # the steps of the longest delay and 1
    "pending_or_0",
    # Of `lif_network`:
    "earlier",  # the steps of the longest recurrent delay and 1
    "earlier_or_0",
    "width",  # of the array of inputs: their number, or the slots of their lists
    "sent",  # inputs of a layer, before delays and pooling
    "weight_rows",  # of dense weights the inputs after pooling, of a convolution its taps
    "weight_columns",
    "recurrent_rows",  # of dense weights the neurons that send; weights of synapses are one row
    "recurrent_columns",
    "slots",  # the capacity, or neurons if a layer fires no lists
    "input_bytes",  # with one bit for each
    "neuron_bytes",
    "list_entries",  # of a list on the tiles of an IPU: its header and its slots
    # Of the weights of `spike_conv`:
    "kernel_height",
    "kernel_width",
    "group_inputs",
    "channels_out",
)

# What may come in two forms, as one array or as others together: by their names behind that of the field, with their
# axes where these are others ("last" is the last one).
FORMS = {
    "weights": {"values": ("int8", None), "scale": ("floats", ("last",))},  # `Quantised`
    "sparse": {"values": ("int8", None), "scale": ("floats", ("outputs",))},  # the same of synapses
    "threshold": {"rows": ("floats", ("rows", "neurons"))},  # one for each membrane
    # Given `SparseSpikes`, without counts.
    "events": {"ids": ("given_ids", None), "values": ("values", None)},
    "spikes": {
        "ids": ("ids", ("steps", "batch", "capacity")),
        "values": ("floats", ("steps", "batch", "capacity")),
        "num_spikes": ("counts", ("steps", "batch")),
        "num_listed": ("counts", ("steps", "batch")),
    },
}


class Arrays(NamedTuple):
    """An array of a record. It is there always, or as the rest says."""

    numbers: str
    axes: tuple[str, ...]
    # "optional", or there "with" or "without" another array or record, which is named from the operands on
    given: str = "always"
    # "wanted" if it is asked for, "always" if the CPU's kernel computes it whenever the array is there, or "none"
    gradient: str = "none"
    form: str = "array"  # "ids" of lists, or one of FORMS


def arrays(numbers: str, *axes: str, **options: str) -> Arrays:
    """An array of these numbers and axes."""
    assert numbers in NUMBERS and set(axes) <= set(AXES)
    return Arrays(numbers, axes, **options)


# The products of spikes with weights, which share a table: the arrays that each has in place of those marked `OWN`.
PRODUCTS = {
    "spike_matmul": {"weights": arrays("floats", "neurons", "outputs", form="weights")},
    "spike_sparse_matmul": {
        "weights": arrays("floats", "synapses", form="sparse"),
        "ends": arrays("counts", "neurons"),
        "targets": arrays("given_ids", "synapses"),
    },
    "spike_conv": {
        "weights": arrays("floats", "kernel_height", "kernel_width", "group_inputs", "channels_out"),
    },
}
OWN = Arrays("own", (), form="own")

# The table of each op that has kernels or codelets, from this folder on.
TABLES = {
    "lif_network": "ops/_lif_network/records.py",
    **{
        op: f"ops/_tables/{op}.py"
        for op in (
            "connect",
            "delay_spikes",
            "delayed_spike_matmul",
            "integer_layer",
            "moments",
            "pool_spikes",
            "select_spikes",
            "simulate",
        )
    },
    **dict.fromkeys(PRODUCTS, "ops/_tables/products.py"),
}


@functools.cache  # for each call of an op it would take longer than the rest
def fields(record: type) -> dict[str, Any]:
    """The annotations of a record by field."""
    return typing.get_type_hints(record, include_extras=True)


def digest() -> str:
    """A hash of all tables; libraries, codelets and programs carry that of the tables that they were made with."""
    package = Path(__file__).parent
    texts = [Path(__file__), package / "_neuron_table.py"]
    texts += [package / table for table in dict.fromkeys(TABLES.values())]
    return hashlib.sha256(b"\0".join(text.read_bytes() for text in texts)).hexdigest()[:16]
