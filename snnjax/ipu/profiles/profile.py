"""The profile of a run on the IPU Model: what it would have cost on the chip, and how that is shown."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from snnjax._check import alternatives, fail
from snnjax._write import write_atomically
from snnjax.ipu.profiles import figures, page, text
from snnjax.ipu.profiles.costs import Costs


@dataclass(frozen=True)
class Profile(Costs):
    """The modelled cost of a run on the chip; nothing was measured on hardware.

    The chip is in one phase at a time: ``cycles = compute + exchange + sync + host``, in cycles of the tile clock.

    Example:
        >>> import jax.numpy as jnp
        >>> from snnjax import ipu
        >>> profile = ipu.profile(lambda x: 2 * x + 1, jnp.arange(8.0))
        >>> profile.cycles == sum(profile.phases) == sum(each.cycles for each in profile.operations)
        True
        >>> for name, codelet in profile.codelets.items():
        ...     name.startswith("snnjax::"), codelet.count > 0, codelet.mean <= codelet.max
        (True, True, True)
        >>> bool(profile.tile_memory.max() < profile.data["memory_per_tile"])
        True
        >>> "not measured on hardware" in str(profile), profile.html().startswith("<!DOCTYPE html>")
        (True, True)
    """

    def html(self) -> str:
        """The profile as a self-contained HTML page."""
        return page.render(self)

    def figures(self) -> dict[str, Any]:
        """The figures by name, as matplotlib ``Figure`` objects."""
        return figures.draw(self)

    def save(self, path: str | Path) -> None:
        """Write the profile to a .html, .json or .txt file.

        Raises:
            ValueError: if the file name has another suffix.
        """
        writers: dict[str, Callable[[], str]] = {
            ".html": self.html,
            ".json": lambda: self.json,
            ".txt": lambda: str(self),
        }
        ending = Path(path).suffix
        if ending not in writers:
            expected, hint = alternatives(list(writers)), "Save the figures of figures() with their savefig"
            fail(f"Profile.save: `path` must end in {expected}, got {ending!r}. {hint}.")
        write_atomically("Profile.save", path, writers[ending]().encode())

    def __str__(self) -> str:
        return text.summary(self)
