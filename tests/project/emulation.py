"""Python for aarch64 in a folder, with what the tests of ops import: `make test-aarch64` runs it in QEMU.

Its packages are those of the system (Debian or Ubuntu), unpacked beside it and not installed; those of Python have the
versions that are installed here, so that results can be compared."""

import argparse
import importlib.metadata
import os
import subprocess
import sys
from pathlib import Path

_SYSTEM = ("python3-minimal", "libpython3-stdlib", "libgomp1", "libstdc++6")
# What snnjax and the tests of ops import; pip adds what these need.
_PYTHON = (
    "jax",
    "jaxlib",
    "numpy",
    "optax",
    "safetensors",
    "jaxtyping",
    "h5py",
    "pillow",
    "matplotlib",
    "tqdm",
    "nir",
)
_TESTS = ("beartype", "chex", "hypothesis", "pytest", "pytest-xdist")
# pip knows of these names only what it is told; jaxlib's own is the highest.
_PLATFORMS = ("manylinux2014_aarch64", *(f"manylinux_2_{minor}_aarch64" for minor in range(17, 29)))


def main() -> None:
    """Make the folder where it is missing, and become pytest in it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("kernels", type=Path, help="the library of the CPU kernels for aarch64")
    parser.add_argument("pytest", nargs="*", help="what pytest is given")
    arguments = parser.parse_args()
    folder = arguments.folder.resolve()
    if not (folder / "ready").exists():
        _unpack_system(folder)
        _install_packages(folder)
        (folder / "ready").touch()
    root = Path.cwd()
    environment = os.environ | {
        "PYTHONPATH": f"{folder / 'packages'}:{root}:{root / 'xla_ext' / 'pjrt'}",
        "SNNJAX_CPU_KERNELS": str(arguments.kernels.resolve()),
    }
    system, python = folder / "system", str(_python(folder))
    command = [
        "qemu-aarch64",
        "-L",
        str(system),
        python,
        "-m",
        "pytest",
        "-p",
        "no:cacheprovider",
        *arguments.pytest,
    ]
    os.execvpe(command[0], command, environment)


def _unpack_system(folder: Path) -> None:
    """Python and the libraries under it, with nothing asked of the package manager but to find and download them."""
    downloads = folder / "downloads"
    for part in ("lists/partial", "archives/partial"):
        (downloads / part).mkdir(parents=True, exist_ok=True)
    (downloads / "status").touch()
    options = {
        "APT::Architecture": "arm64",
        "APT::Architectures": "arm64",
        "Dir::State": downloads,
        "Dir::State::status": downloads / "status",
        "Dir::Cache": downloads,
    }
    apt = ["apt-get", "-qq", *(part for name, value in options.items() for part in ("-o", f"{name}={value}"))]
    subprocess.run([*apt, "update"], check=True)
    subprocess.run(
        [*apt, "install", "--download-only", "--yes", "--no-install-recommends", *_SYSTEM], check=True
    )
    for package in sorted((downloads / "archives").glob("*.deb")):
        subprocess.run(["dpkg-deb", "--extract", package, folder / "system"], check=True)


def _install_packages(folder: Path) -> None:
    wanted = [f"{name}=={importlib.metadata.version(name)}" for name in (*_PYTHON, *_TESTS)]
    platforms = [part for platform in _PLATFORMS for part in ("--platform", platform)]
    where = ["--target", str(folder / "packages"), "--only-binary", ":all:"]
    version = ["--python-version", _python(folder).name.removeprefix("python")]
    pip = [sys.executable, "-m", "pip", "install", "--quiet"]
    subprocess.run([*pip, *where, *version, *platforms, *wanted], check=True)
    # Only for what it says of itself: the working tree comes before it on the path.
    own = ["--target", str(folder / "packages"), "--no-deps", "--config-settings=wheel.cmake=false", "."]
    subprocess.run([*pip, *own], check=True)


def _python(folder: Path) -> Path:
    return next((folder / "system/usr/bin").glob("python3.[0-9]*"))


if __name__ == "__main__":
    main()
