"""What a folder lacks of a data set that was downloaded."""

from pathlib import Path

from snnjax._check import check_choice
from snnjax.data._files import PathLike

_SUFFIXES = (".gz", ".zip", ".tar.gz")
# Files by data set; those of DVS-Gesture also list others, and N-MNIST has one per recording.
_FILES = {
    "shd": ("shd_train.h5", "shd_test.h5"),
    "ssc": ("ssc_train.h5", "ssc_valid.h5", "ssc_test.h5"),
    "dvs-gesture": ("trials_to_train.txt", "trials_to_test.txt"),
    "fashion": tuple(
        f"{part}-{kind}-ubyte" for part in ("train", "t10k") for kind in ("images-idx3", "labels-idx1")
    ),
    "nmnist": (),
}
_PLAIN_OR_PACKED = ("fashion",)  # read compressed, too
_NMNIST_RECORDINGS = {"Train": 60_000, "Test": 10_000}


def missing_files(name: str, root: PathLike) -> list[str]:
    """List what the folder `root` lacks of a downloaded data set; an empty list means that nothing is missing.

    Each entry names a file or a folder, and what to do if its archive is there but not unpacked. Files are not read,
    so a damaged one is only found when it is loaded.

    Args:
        name: "nmnist", "shd", "ssc", "dvs-gesture" or "fashion", as for ``snnjax train --task``.
        root: the folder, as for ``snnjax train --data``.

    Errors: the name is none of these.

    Example:
        >>> import pathlib, tempfile
        >>> from snnjax.data import missing_files
        >>> root = pathlib.Path(tempfile.mkdtemp())
        >>> for name in ("shd_train.h5", "shd_test.h5.gz"):
        ...     _ = (root / name).write_bytes(b"content")
        >>> missing_files("shd", root)
        ['shd_test.h5 (unpack shd_test.h5.gz)']
    """
    check_choice("missing_files", "name", name, tuple(_FILES))
    folder = Path(root)
    if not folder.is_dir():
        return [f"{folder} (no such folder)"]
    packed = name in _PLAIN_OR_PACKED
    found = [text for file in _FILES[name] if (text := _lack(folder, file, packed))]
    if name == "nmnist":
        found += [text for part in _NMNIST_RECORDINGS if (text := _lack_of_nmnist(folder, part))]
    if name == "dvs-gesture":
        found += [text for file in _gesture_files(folder) if (text := _lack(folder, file, False))]
    return found


def _lack(folder: Path, name: str, packed: bool) -> str:
    """The name of a file that is not there, or is empty; else nothing."""
    path = folder / name
    archives = [archive for suffix in _SUFFIXES if (archive := folder / f"{name}{suffix}").is_file()]
    if path.is_file():
        return "" if path.stat().st_size else f"{name} (empty: download it again)"
    if archives:
        return "" if packed else f"{name} (unpack {archives[0].name})"
    return name


def _lack_of_nmnist(folder: Path, part: str) -> str:
    """How many recordings of a part of N-MNIST are not there; else nothing."""
    if not (folder / part).is_dir():
        return f"{part} (unpack {part}.zip)" if (folder / f"{part}.zip").is_file() else part
    count = sum(1 for file in (folder / part).glob("[0-9]/*.bin") if file.name[0] != ".")
    whole = _NMNIST_RECORDINGS[part]
    return "" if count >= whole else f"{part} ({count:,} of {whole:,} recordings)"


def _gesture_files(folder: Path) -> list[str]:
    """The recordings that the lists of DVS-Gesture name, and their labels."""
    lists = [folder / name for name in _FILES["dvs-gesture"]]
    names = [name for path in lists if path.is_file() for name in path.read_text("utf-8", "replace").split()]
    return [file for name in names for file in (name, f"{Path(name).stem}_labels.csv")]
