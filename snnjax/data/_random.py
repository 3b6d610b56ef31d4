"""From a JAX key to a NumPy generator: data are prepared on the host, but every random choice has an explicit key."""

import jax
import numpy as np
from jaxtyping import PRNGKeyArray


def generator(key: PRNGKeyArray, *stream: int) -> np.random.Generator:
    """A generator that only depends on `key` and the integers in `stream` (an epoch, the index of a use)."""
    words = np.asarray(jax.random.key_data(key)).ravel().tolist()
    # The length of the key distinguishes (key, stream) from another key that happens to end in the same words.
    return np.random.Generator(np.random.Philox(np.random.SeedSequence([len(words), *words, *stream])))
