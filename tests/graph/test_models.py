"""Whole networks: published numbers of parameters, SpikingJelly's spikes with its weights, training, errors."""

import functools
import gzip
import json
import math
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import snnjax
from snnjax import losses, models, neurons, surrogates
from tests.errors.refusals import refusals
from tests.golden.make_models import BATCH, CLASSES, STEPS, arrays_like, images
from tests.ops.common import jit

LARGE = (224, 224, 3)
GOLDEN = json.loads(gzip.decompress((Path(__file__).parents[1] / "golden" / "models.json.gz").read_bytes()))
# SpikingJelly's LIFNode().
NODE = neurons.lif(
    0.5,
    reset="zero",
    detach_reset=False,
    inclusive=True,
    reset_time="immediate",
    surrogate=surrogates.sigmoid(4),
)
MADE = {
    "sew_resnet18": lambda shape: models.sew_resnet(shape, CLASSES, 18, neuron=NODE),
    "sew_resnet34": lambda shape: models.sew_resnet(shape, CLASSES, 34, neuron=NODE),
    "spikformer": lambda shape: models.spikformer(shape, CLASSES, 2, 64, 4, neuron=NODE),
}


@pytest.mark.parametrize(
    "make, published",
    [
        (lambda: models.sew_resnet(LARGE, 1000, 18), 11_689_512),
        (lambda: models.sew_resnet(LARGE, 1000, 34), 21_797_672),
        (lambda: models.sew_resnet(LARGE, 1000, 50), 25_557_032),
        # ResNet and a shortcut in the first stage.
        (lambda: models.ms_resnet(LARGE, 1000, 18), 11_689_512 + 64 * 64 + 2 * 64),
        (lambda: models.ms_resnet(LARGE, 1000, 34), 21_797_672 + 64 * 64 + 2 * 64),
        # 29.68 M with biases in front of the norms of its two layers, which the norms take out.
        (lambda: models.spikformer(LARGE, 1000, 8, 512), 29_685_288 - 8 * (4 * 512 + 512)),
    ],
)
def test_parameters_are_as_many_as_published(make, published: int) -> None:
    params = jax.eval_shape(make().init, jax.random.key(0))
    assert sum(math.prod(leaf.shape) for leaf in jax.tree.leaves(params)) == published


# The 34 layers are the blocks of the 18, more of them: one mode is enough.
@pytest.mark.parametrize(
    "name, mode",
    [
        (name, mode)
        for name in MADE
        for mode in ("eval", "train")
        if (name, mode) != ("sew_resnet34", "train")
    ],
)
def test_spikes_are_those_of_spikingjelly_with_its_weights(name: str, mode: str) -> None:
    case = GOLDEN[name]
    net = MADE[name]((case["size"], case["size"], 3))
    arrays = arrays_like({key: tuple(shape) for key, shape in case["shapes"].items()})
    layers = [node.name for node in net.nodes if node.block.is_spiking]
    with jax.enable_x64(True):
        wide = functools.partial(jnp.asarray, dtype=jnp.float64)
        params, stats = models.from_spikingjelly(net, arrays)
        params = jax.tree.map(wide, params)
        x = jnp.broadcast_to(wide(images(case["size"])), (STEPS, BATCH, case["size"], case["size"], 3))
        run = functools.partial(net.apply, stats=stats, train=mode == "train", record=tuple(layers))
        out, _ = jit(run)(params, None, x)
    counts = {each: np.sum(np.asarray(out.recorded[each]).reshape(STEPS, -1), 1) for each in layers}
    found: list[np.ndarray] = []
    for each, own in counts.items():  # queries, keys and values are neurons of one layer there
        if each.endswith(("/k/neuron", "/v/neuron")):
            found[-1] = found[-1] + own
        else:
            found.append(own)
    np.testing.assert_array_equal(np.array(found), np.array(case[mode]["spikes"]))
    assert np.sum(found[-1]) > 0
    np.testing.assert_allclose(out.output, case[mode]["logits"], atol=1e-6)  # stats are float32


@pytest.mark.parametrize(
    "make",
    [
        functools.partial(models.vgg, stages=((4, 4), (8,)), strides=2, capacity=0.2),
        functools.partial(models.sew_resnet, join="iand"),
        models.ms_resnet,
        functools.partial(models.spikformer, depth=1, width=16, heads=2),
    ],
)
def test_models_have_gradients_in_every_layer(make) -> None:
    net = make((16, 16, 2), 3)
    x = jax.random.uniform(jax.random.key(0), (2, 2, 16, 16, 2)) * 4
    params = net.init(jax.random.key(1))

    @jax.jit
    @jax.grad
    def gradient(params):
        out, _ = net.apply(params, None, x, stats=net.initial_stats(jax.random.key(0)), train=True)
        return losses.temporal_efficient(out.output, jnp.array([0, 2]))

    found = gradient(params)
    silent = [
        name for name, own in found.items() if not all(np.any(leaf != 0) for leaf in jax.tree.leaves(own))
    ]
    assert silent == []


SMALL = models.vgg((4, 4, 1), 2, [[3]])
NORM = {f"1.{name}": np.ones(3) for name in ("weight", "bias", "running_mean", "running_var")}
END = {"2.weight": np.ones((2, 12)), "2.bias": np.ones(2)}


def taken(**arrays):
    return models.from_spikingjelly(SMALL, arrays)


def test_linear_layers_behind_images_have_their_pixels_first() -> None:
    weights = (
        np.random.default_rng(0).normal(size=(2, 3, 2, 2)).astype(np.float32)
    )  # [out, channels, height, width]
    end = {"2.weight": weights.reshape(2, 12), "2.bias": np.zeros(2)}
    params, _ = taken(**{"0.weight": np.ones((3, 1, 3, 3))}, **NORM, **end)
    image = np.random.default_rng(1).normal(size=(3, 2, 2)).astype(np.float32)
    expected = weights.reshape(2, 12) @ image.reshape(12)
    own = np.moveaxis(image, 0, -1).reshape(12) @ np.asarray(params["readout"].weights)
    np.testing.assert_allclose(own, expected, rtol=1e-5)


IN_ORDER = (
    "models.from_spikingjelly: `arrays` must be in the order of a state dict, got the order of the names. "
    "Pass {name: arrays[name] for name in model.state_dict()}."
)


def test_tenth_layers_are_not_taken_before_second_ones() -> None:
    """Layers of one shape without biases or norms, of which only the numbers tell the order."""
    net = snnjax.network(2, [snnjax.layer(snnjax.dense(2, bias=False)) for _ in range(3)])
    arrays = {f"{k}.weight": k * np.ones((2, 2)) for k in (0, 2, 10)}
    params, _ = models.from_spikingjelly(net, arrays)
    assert [float(params[f"layer_{k}/connection"].weights[0, 0]) for k in range(3)] == [0, 2, 10]
    with pytest.raises(ValueError) as error:
        models.from_spikingjelly(net, dict(sorted(arrays.items())))
    assert str(error.value) == IN_ORDER


test_refusals = refusals(
    {
        "models.sew_resnet: `depth` must be 18, 34 or 50, got 20. Choose one of these.": lambda: (
            models.sew_resnet((32, 32, 3), 10, 20)
        ),
        "models.vgg: `strides` must be an integer of at least 1, got 0. Pass 1 or more.": lambda: models.vgg(
            (32, 32, 3), 10, strides=0
        ),
        "models.spikformer: `width` must be a multiple of 8 and of 3 heads, got 64. Choose such a number.": lambda: (
            models.spikformer((32, 32, 3), 10, width=64, heads=3)
        ),
        "models.from_spikingjelly: `arrays` must hold 3 modules with weights, got 2. "
        "Make the network with the same depth and widths.": lambda: taken(**NORM, **END),
        "models.from_spikingjelly: `arrays` must hold weights of shape (3, 3, 1, 3) in '0' for 'layer_0/connection', "
        "got (5, 5, 1, 3). Make the network with the same sizes.": lambda: taken(
            **{"0.weight": np.ones((3, 1, 5, 5))}, **NORM, **END
        ),
        "models.from_spikingjelly: `arrays` must hold `bias` of shape (2,) in '2' for 'readout', got (0,). "
        "Make the network with the same sizes.": lambda: taken(
            **{"0.weight": np.ones((3, 1, 3, 3))}, **NORM, **{"2.weight": np.ones((2, 12))}
        ),
        "models.from_spikingjelly: `arrays` must hold no bias in '0' for 'layer_0/connection', got one. "
        "Make the network with the same sizes.": lambda: taken(
            **{"0.weight": np.ones((3, 1, 3, 3)), "0.bias": np.ones(3)}, **NORM, **END
        ),
        "models.from_spikingjelly: `arrays` must hold those of connections and norms, got '3.w'. "
        "Give its value to the neurons, and leave it out.": lambda: taken(
            **{"0.weight": np.ones((3, 1, 3, 3))}, **NORM, **END, **{"3.w": np.zeros(())}
        ),
        # As safetensors reads them, by which layers of one shape would be exchanged.
        IN_ORDER: lambda: taken(**dict(sorted({"0.weight": np.ones((3, 1, 3, 3)), **NORM, **END}.items()))),
        "models.from_spikingjelly: `arrays` must hold a norm in '2' for 'layer_0/norm', got a connection. "
        "Make the network with the same sizes.": lambda: taken(
            **{"0.weight": np.ones((3, 1, 3, 3))}, **END, **NORM
        ),
    }
)
