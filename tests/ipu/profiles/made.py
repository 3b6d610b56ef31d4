"""Profiles made by hand, with numbers that a reader can check by head."""

import json
from typing import Any

from snnjax.ipu import Profile

MEMORY = ("variables", "vertices", "code", "exchange_code", "buffers", "stacks")


def exchange(cycles: int = 0, bytes_: int = 0, links: int = 0, messages: int = 0) -> dict[str, int]:
    return {"cycles": cycles, "bytes": bytes_, "link_bytes": links, "messages": messages}


def compute_set(name: str, position: int, cycles: int, **more) -> dict[str, Any]:
    """One that ran twice on two tiles, of which the other took half as long as the slowest."""
    defaults = {"executions": 2, "max": cycles, "tiles": 2, "tile_cycles": 3 * cycles // 2, "balance": 0.75}
    known = {"name": name, "position": position, "cycles": cycles, "sync_cycles": 0, "codelets": []}
    return {**known, **defaults, "exchange": exchange(), **more}


def copy(name: str, position: int, **more) -> dict[str, Any]:
    known = {"name": name, "position": position, "executions": 1, "sync_cycles": 0, "host_cycles": 0}
    return {**known, "exchange": exchange(), **more}


def codelet(name: str, count: int, cycles: int, most: int) -> dict[str, Any]:
    known = {"name": name, "vertices": 2, "count": count, "cycles": cycles, "max": most, "unknown": 0}
    return {**known, "mean": cycles / count}


def data(**changes) -> dict[str, Any]:
    """1,000 cycles on two tiles of one Mk2: 600 compute, 200 exchange, 100 sync, 100 host."""
    tiles = [dict.fromkeys(MEMORY, 0) | {"cycles": 500, "variables": 1024, "code": 1024}]
    tiles.append(dict.fromkeys(MEMORY, 0) | {"cycles": 250, "variables": 512, "buffers": 512})
    made: dict[str, Any] = {"chip": "mk2", "clock_hz": 1e6, "ipus": 1, "tiles_per_ipu": 2}
    made |= {"memory_per_tile": 4096, "seconds": 1e-3, "tiles": tiles}
    made |= {"unknown_codelets": [], "waiting": [0]}
    made["cycles"] = {"compute": 600, "exchange": 200, "sync": 100, "host": 100, "total": 1000}
    made["compute_sets"] = [
        compute_set("dot/products (net.py:3)", 2, 400, exchange=exchange(150, 96, 32, 6), sync_cycles=40),
        compute_set("dot/sums (net.py:3)", 3, 100, sync_cycles=10),
        compute_set("add (net.py:4)", 4, 100),
        compute_set("never (net.py:5)", 5, 0, executions=0, tile_cycles=0),
    ]
    made["copies"] = [copy("concatenate (net.py:4)", 1, exchange=exchange(50, 32, 0, 2), sync_cycles=20)]
    made["streams"] = [copy("x", 0, host_cycles=100, sync_cycles=10, exchange=exchange(bytes_=64))]
    made["codelets"] = [codelet("Dot<float>", 4, 1000, 300), codelet("Add<float>", 2, 100, 50)]
    return made | changes


def profile(**changes) -> Profile:
    """`data` with changes, as a profile."""
    return Profile(json.dumps(data(**changes)))
