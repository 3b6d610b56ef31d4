"""Makes models.json.gz, the outputs of SpikingJelly's models with weights that NumPy draws:

    python make_models.py    # where PyTorch and SpikingJelly are installed

The weights are drawn as in tests/graph/test_models.py, so the file holds only the shapes, and for both modes of the
norm the logits and how many spikes each layer of neurons sends in each step. All is computed in float64, in which no
membrane is as close to its threshold as rounding goes.
"""

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np

STEPS, BATCH, CLASSES = 4, 2, 10


def arrays_like(shapes: dict[str, tuple[int, ...]], seed: int = 0) -> dict[str, np.ndarray]:
    """Arrays of a state dict: weights that keep layers active, and norms that are no identities."""
    rng, found = np.random.default_rng(seed), {}
    for name, shape in shapes.items():
        last = name.rpartition(".")[2]
        if last == "running_var":
            found[name] = rng.uniform(0.5, 1.5, shape)
        elif last == "running_mean":
            found[name] = rng.normal(0, 0.1, shape)
        elif len(shape) > 1:
            found[name] = rng.normal(0, 1, shape) / np.sqrt(np.prod(shape[1:]))
        elif last == "weight":
            found[name] = rng.uniform(1, 2, shape)
        elif last == "bias":
            found[name] = rng.normal(0.5, 0.3, shape)
    return {name: array.astype(np.float32) for name, array in found.items()}


def images(size: int) -> np.ndarray:
    """Random images ``[batch, height, width, channels]`` whose numbers are multiples of 1/8."""
    return np.random.default_rng(1).integers(0, 8, (BATCH, size, size, 3)).astype(np.float32) / 8


def run(model: Any, x: Any, kind: type) -> tuple[Any, list[list[float]]]:
    """The logits, and the spikes of each layer of neurons in each step."""
    import torch

    counts: list[list[float]] = []
    neurons = [own for own in model.modules() if isinstance(own, kind)]
    hooks = [
        own.register_forward_hook(lambda _, __, out: counts.append(out.flatten(1).sum(1).tolist()))
        for own in neurons
    ]
    with torch.no_grad():
        logits = model(x)
    for hook in hooks:
        hook.remove()
    return logits, counts


def main() -> None:
    """Run all models, and write the file beside this one."""
    import torch
    from spikingjelly.activation_based import functional, neuron
    from spikingjelly.activation_based.model import sew_resnet, spikformer

    options: dict[str, Any] = {"spiking_neuron": neuron.LIFNode, "num_classes": CLASSES, "cnf": "ADD"}
    models = {
        "sew_resnet18": (64, lambda: sew_resnet.sew_resnet18(**options)),
        "sew_resnet34": (64, lambda: sew_resnet.sew_resnet34(**options)),
        "spikformer": (
            128,
            lambda: spikformer.Spikformer(
                img_size_h=128, img_size_w=128, embed_dims=64, num_heads=4, depths=2, num_classes=CLASSES
            ),
        ),
    }
    found: dict[str, Any] = {"versions": {"torch": torch.__version__}}
    for name, (size, make) in models.items():
        model = make()
        functional.set_step_mode(model, "m")
        state = model.state_dict()
        drawn = arrays_like({key: tuple(own.shape) for key, own in state.items() if own.ndim > 0})
        model.load_state_dict({**state, **{key: torch.from_numpy(own) for key, own in drawn.items()}})
        model.double()
        x = torch.from_numpy(images(size)).double().permute(0, 3, 1, 2)[None].repeat(STEPS, 1, 1, 1, 1)
        case: dict[str, Any] = {"size": size, "shapes": {key: list(own.shape) for key, own in drawn.items()}}
        for mode in ("eval", "train"):
            getattr(model, mode)()
            functional.reset_net(model)
            logits, counts = run(model, x, neuron.LIFNode)
            case[mode] = {"logits": logits.tolist(), "spikes": counts}
        found[name] = case
    Path(__file__).with_name("models.json.gz").write_bytes(gzip.compress(json.dumps(found).encode(), mtime=0))


if __name__ == "__main__":
    main()
