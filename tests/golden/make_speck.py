"""Make `speck.npz`: random small networks in the layers of sinabs for Speck, with all of their states and spikes.

    python make_speck.py                            # where sinabs is installed
    python make_speck.py /tmp/speck.npz 1000 7      # more of them, of another seed, elsewhere

Made with sinabs 3.1.3, torch 2.13.0 and numpy 2.4.6 in Python 3.11: `DynapcnnLayer` quantises its weights, bias and
threshold, and computes with them. A fourth of the networks each has few spikes, biases, means in place of sums of
pools, and inputs and weights so large that membranes come to their bound and neurons spike as often as they may.
Membranes have no upper bound there: networks that come beyond that of 16 bits are drawn again. `<number>/<name>` are
the input `x`, what a layer is given (`0/w`, `0/b`, in the layout of snnjax), its integers, and its spikes and membranes
after each step. `tests/integers/test_speck.py` compares them, and any such file with `python -m
tests.integers.test_speck FILE`.
"""

import sys
import types
from pathlib import Path

import numpy as np
import sinabs
import sinabs.activation
import torch
from sinabs.layers import IAFSqueeze

# The package that holds the layers imports the driver of the chip too, which they do not use.
package = types.ModuleType("sinabs.backend.dynapcnn")
package.__path__ = [str(Path(sinabs.__file__).parent / "backend/dynapcnn")]
sys.modules[package.__name__] = package

from sinabs.backend.dynapcnn.discretize import determine_discretization_scale  # noqa: E402
from sinabs.backend.dynapcnn.dynapcnn_layer import DynapcnnLayer  # noqa: E402

KINDS = ("quiet", "biases", "means", "loud")
STEPS, SIDE, MOST = 16, 8, 15
# Channels in and out, kernel, stride, padding and pool of each layer; the last one is dense.
LAYERS = ((2, 4, 3, 1, 1, 2), (4, 5, 3, 2, 1, 1), (5, 6, 2, 1, 0, 1))


def quantised(rng: np.random.Generator, kind: str, place: int, side: int) -> tuple[DynapcnnLayer, dict]:
    """A random layer of sinabs, and what it was given, with channels last."""
    channels, out, kernel, stride, padding, pool = LAYERS[place]
    mean, size = (-0.4 if place == 0 else 0.0, 0.7) if kind == "loud" else (0.05, 0.3)
    weights = rng.normal(mean, size, (out, channels, kernel, kernel))
    bias = rng.normal(0, 0.1, out) * (kind != "quiet")
    after_mean = kind == "means" and place == 1  # whose factor sinabs moves into the weights behind the pool
    given = torch.tensor(weights, dtype=torch.float32), torch.tensor(bias, dtype=torch.float32)
    scales = [
        determine_discretization_scale(own, 8) for own in (given[0] * (0.25 if after_mean else 1), given[1])
    ]
    scale = min(*scales, torch.tensor(32767.0))
    spiking = IAFSqueeze(
        batch_size=1,
        min_v_mem=float(-32768 / scale),
        spike_fn=sinabs.activation.MaxSpike(MOST),
        record_states=True,
    )
    conv = torch.nn.Conv2d(channels, out, kernel, stride=stride, padding=padding)
    conv.weight.data, conv.bias.data = given
    layer = DynapcnnLayer(
        conv, spiking, (channels, side, side), pool=[(pool, pool)], rescale_weights=0.25 if after_mean else 1
    )
    assert int(layer.spk.min_v_mem) == -32768
    own = [
        each.detach().numpy()
        for each in (*given, layer.conv.weight, layer.conv.bias, layer.spk.spike_threshold)
    ]
    own = [np.moveaxis(each, (2, 3, 1, 0), (0, 1, 2, 3)) if each.ndim == 4 else each for each in own]
    return layer, dict(zip(("w", "b", "wi", "bi", "threshold"), own, strict=True))


def network(rng: np.random.Generator, kind: str) -> dict[str, np.ndarray]:
    """The input, the layers and the states of a network whose membranes fit into 16 bits."""
    while True:
        found = drawn(rng, kind)
        if max(found[f"{place}/v"].max() for place in range(len(LAYERS))) < 2**15:
            return found


def drawn(rng: np.random.Generator, kind: str) -> dict[str, np.ndarray]:
    """The input, the layers and the states of a random network."""
    x = rng.poisson(4.0 if kind == "loud" else 0.2, (STEPS, SIDE, SIDE, 2)).clip(0, MOST)
    found, signal, side = {"x": x}, torch.tensor(np.moveaxis(x, -1, 1), dtype=torch.float32), SIDE
    for place in range(len(LAYERS)):
        layer, own = quantised(rng, kind, place, side)
        seen: list[torch.Tensor] = []
        layer.spk.register_forward_hook(lambda *given, seen=seen: seen.append(given[-1]))
        with torch.no_grad():
            signal = layer(signal)
        own |= {"s": seen[0].numpy(), "v": layer.spk.recordings["v_mem"][0].detach().numpy()}
        own |= {name: np.moveaxis(own[name], 1, -1) for name in ("s", "v")}
        found |= {f"{place}/{name}": values for name, values in own.items()}
        side = signal.shape[-1]
    return found


def main() -> None:
    """Write the networks to a file."""
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).with_name("speck.npz")
    count, seed = (int(sys.argv[2]), int(sys.argv[3])) if len(sys.argv) > 3 else (4, 2031)
    saved = {}
    for number in range(count):
        rng = np.random.default_rng((seed, number))
        for name, values in network(rng, KINDS[number % 4]).items():
            if name[1:] not in ("/w", "/b"):
                assert np.array_equal(values, np.round(values))
                values = values.astype(np.min_scalar_type(-int(abs(values).max()) - 1))
            saved[f"{number}/{name}"] = values
    np.savez_compressed(path, **saved)


if __name__ == "__main__":
    main()
