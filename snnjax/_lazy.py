"""The public modules of the index, imported when they are first used: ``import snnjax; snnjax.losses``."""

import importlib
import pkgutil
import sys
from types import ModuleType

_PACKAGE = "snnjax"


def __getattr__(name: str) -> ModuleType:
    """The module of this name, for ``snnjax.__getattr__``."""
    if name not in _modules():
        index = sys.modules[_PACKAGE]
        raise AttributeError(f"module {_PACKAGE!r} has no attribute {name!r}", name=name, obj=index)
    return importlib.import_module(f"{_PACKAGE}.{name}")


def __dir__() -> list[str]:
    """The names of the index with those of all public modules, for ``snnjax.__dir__``."""
    return sorted({*vars(sys.modules[_PACKAGE]), *_modules()})


def _modules() -> set[str]:
    found = (module.name for module in pkgutil.iter_modules(sys.modules[_PACKAGE].__path__))
    return {name for name in found if not name.startswith("_")}
