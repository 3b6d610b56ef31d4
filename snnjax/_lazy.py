"""The public modules of the index, imported when they are first used: ``import snnjax; snnjax.losses``."""

import importlib
import importlib.util
import pkgutil
import sys
from types import ModuleType

_PACKAGE = "snnjax"


def __getattr__(name: str) -> ModuleType:
    """The module of this name, for ``snnjax.__getattr__``."""
    if name.startswith("_") or importlib.util.find_spec(f"{_PACKAGE}.{name}") is None:
        index = sys.modules[_PACKAGE]
        raise AttributeError(f"module {_PACKAGE!r} has no attribute {name!r}", name=name, obj=index)
    return importlib.import_module(f"{_PACKAGE}.{name}")


def __dir__() -> list[str]:
    """The names of the index with those of all public modules, for ``snnjax.__dir__``."""
    index = sys.modules[_PACKAGE]
    modules = {module.name for module in pkgutil.iter_modules(index.__path__)}
    return sorted({*vars(index), *(name for name in modules if not name.startswith("_"))})
