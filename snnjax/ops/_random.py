"""Random words by counters, as the kernels of `simulate` and `connect` draw them."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int32, UInt32

from snnjax._jax_compat import threefry_2x32

_GOLDEN = 0x9E3779B9  # neighbours differ in all bits
_SHIFTS, _FACTORS = (17, 11, 15, 14), (0xED5AD4BB, 0xAC4C1B51, 0x31848BAB)
_ROUNDS = 4


def key_words(key: Array) -> Int32[Array, "2"]:
    """Two random words of a key, as int32, in which they travel to kernels."""
    return jax.lax.bitcast_convert_type(jax.random.bits(key, (2,), jnp.uint32), jnp.int32)


def threefry(words: Array, first: Array, second: Array) -> tuple[UInt32[Array, "..."], UInt32[Array, "..."]]:
    """Two random words of two counters: Threefry-2x32 with 20 rounds (Salmon et al. 2011)."""
    key = jax.lax.bitcast_convert_type(words, jnp.uint32)
    first, second = jnp.broadcast_arrays(first.astype(jnp.uint32), second.astype(jnp.uint32))
    found = threefry_2x32((key[0], key[1]), jnp.concatenate([first.reshape(-1), second.reshape(-1)]))
    x, y = found[: first.size], found[first.size :]
    return x.reshape(first.shape), y.reshape(first.shape)


def hashed(counter: Array, key: tuple[Array, Array]) -> UInt32[Array, "..."]:
    """A random word of a counter: a bijective hash whose bits are all but unbiased.

    It is triple32 (Wellons 2018, "Prospecting for hash functions"), with the second word of a key before its second
    multiplication.
    """
    x = counter.astype(jnp.uint32) * jnp.uint32(_GOLDEN) + key[0]
    for turn, (shift, factor) in enumerate(zip(_SHIFTS, _FACTORS, strict=False)):
        x = (x ^ (x >> shift)) * jnp.uint32(factor)
        if turn == 0:
            x = x ^ key[1]
    return x ^ (x >> _SHIFTS[-1])


def permuted(place: Array, count: Array, key: tuple[Array, Array]) -> UInt32[Array, "..."]:
    """Places in random permutations of `count` numbers each.

    A Feistel network of four rounds over the next power of four, again and again until it is within.
    """
    count = jnp.maximum(count.astype(jnp.uint32), jnp.uint32(1))
    half = (33 - jax.lax.clz(count - 1)) // 2
    mask = (jnp.uint32(1) << half) - 1

    def once(place: Array) -> Array:
        left, right = place >> half, place & mask
        for turn in range(_ROUNDS):
            left, right = right, left ^ (hashed(right + jnp.uint32(turn << 16), key) & mask)
        return left << half | right

    def again(place: Array) -> Array:
        return jnp.where(place >= count, once(place), place)

    return jax.lax.while_loop(lambda place: jnp.any(place >= count), again, once(place.astype(jnp.uint32)))
