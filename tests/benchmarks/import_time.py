"""How long `import snnjax` takes on top of `import jax`: medians over fresh processes, interleaved.

Run it with ``python tests/benchmarks/import_time.py``.
"""

import statistics
import subprocess
import sys
import time

REPEATS = 11
PROGRAMS = {
    "jax": "import jax",
    # The parts of jax and the libraries that snnjax needs at import, without snnjax itself.
    "jax and jaxtyping": "import jax, jax.numpy, jaxtyping",
    "snnjax": "import snnjax",
}


def seconds(program: str) -> float:
    """The wall time of one fresh interpreter that runs `program`."""
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", program], check=True)
    return time.perf_counter() - start


def main() -> None:
    """Print the table; the first round only warms the file cache."""
    rounds = [{name: seconds(program) for name, program in PROGRAMS.items()} for _ in range(REPEATS + 1)][1:]
    medians = {name: statistics.median(times[name] for times in rounds) for name in PROGRAMS}
    for name, median in medians.items():
        print(f"import {name:<18} {median:6.3f} s   {median - medians['jax']:+.3f} s over jax")


if __name__ == "__main__":
    main()
