"""The lowering rules, by the name of the StableHLO operation."""

from collections.abc import Callable, Sequence

from snnjax.ipu.lowering.operation import Operation

Rule = Callable[[Operation], Sequence[int]]
RULES: dict[str, Rule] = {}


def rule(*names: str) -> Callable[[Rule], Rule]:
    """Register a function from an `Operation` to its result values as the rule of these operations."""

    def register(function: Rule) -> Rule:
        RULES.update(dict.fromkeys(names, function))
        return function

    return register
