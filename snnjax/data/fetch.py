"""Downloads of data sets: resumed, checked against the publisher's sums, and unpacked."""

import contextlib
import hashlib
import http.client
import importlib.util
import os
import shutil
import tarfile
import tempfile
import urllib.error
import urllib.request
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NoReturn

from snnjax._check import check_choice, fail
from snnjax.data._files import PathLike
from snnjax.data._sources import SOURCES, Archive, Source

MIRROR = "SNNJAX_DATA_MIRROR"
_ATTEMPTS = 3  # of a download that breaks off, each from where the last one ended
_TIMEOUT = 60.0  # seconds without an answer
_PIECE = 1 << 20  # bytes that are read at once


def fetch(name: str, root: PathLike, *, progress_bar: bool = False) -> Path:
    """Download and unpack a data set into the folder `root`, and return the folder that its reader takes.

    What is there already is left alone, so a second call downloads nothing. A download that was interrupted goes on
    where it ended, and each archive is compared with the checksum of its publisher before it is unpacked and removed.
    An archive that you have put into `root` yourself is used like one that was downloaded. If ``SNNJAX_DATA_MIRROR``
    is in the environment, files come from there, as ``<mirror>/<name>/<file>``.

    The data have licences of their own, which *Get data* lists. Of DVS-Gesture, whose publisher wants a visit to a
    page, only the archive is checked and unpacked.

    Args:
        name: "shd", "ssc", "nmnist", "dvs-gesture", "cifar10-dvs", "fsdd" or "cifar10".
        root: the folder of the data set, which is made if it does not exist.
        progress_bar: draw a progress bar for each file, if tqdm is installed.

    Raises:
        ValueError: if the name is none of these; if a file has another checksum than that of its publisher, is no
            archive, or does not hold what it should.
        OSError: if a file cannot be downloaded, with the page to visit.

    Example:
        >>> import pathlib, tempfile
        >>> from snnjax.data import fetch
        >>> root = pathlib.Path(tempfile.mkdtemp())
        >>> for part in ("shd_train.h5", "shd_test.h5"):  # as a first call leaves them
        ...     (root / part).touch()
        >>> fetch("shd", root) == root
        True
    """
    check_choice("fetch", "name", name, tuple(SOURCES))
    source, folder = SOURCES[name], Path(root)
    folder.mkdir(parents=True, exist_ok=True)
    for archive in source.archives:
        if not (folder / archive.result).exists():
            file = folder / archive.name
            if not file.is_file():
                _download(name, source, archive, file, progress_bar)
            _check_sum(archive, file)
            _unpack(archive, file, folder)
            file.unlink()
    return folder / source.folder


def _download(name: str, source: Source, archive: Archive, file: Path, progress_bar: bool) -> None:
    """Download an archive, at most in a few pieces; a part of it stays for the next call."""
    mirror = os.environ.get(MIRROR)
    address = f"{mirror.rstrip('/')}/{name}/{archive.name}" if mirror else archive.address
    if address is None:
        _not_there(source, archive, "an address that asks for a visit to its page", file)
    part, reason = file.with_name(f"{file.name}.part"), ""
    for _ in range(_ATTEMPTS):
        try:
            if _append(address, part, progress_bar):
                part.replace(file)
                return
            reason = "a connection that broke off"
        except urllib.error.HTTPError as error:
            _not_there(source, archive, f"the answer {error.code} from {address}", file)
        except (OSError, http.client.HTTPException) as error:
            reason = f"{getattr(error, 'reason', None) or error!r} from {address}"
    _not_there(source, archive, reason, file)


def _not_there(source: Source, archive: Archive, actual: str, file: Path) -> NoReturn:
    hint = f"Download {archive.name} from {source.page} as {str(file)!r}, and call fetch again"
    raise OSError(f"fetch: `name` must be a data set that can be downloaded, got {actual}. {hint}.")


def _append(address: str, part: Path, progress_bar: bool) -> bool:
    """Read what is missing of a file; returns whether it is whole."""
    done = part.stat().st_size if part.is_file() else 0
    request = urllib.request.Request(address, headers={"Range": f"bytes={done}-"} if done else {})
    try:
        answer = urllib.request.urlopen(request, timeout=_TIMEOUT)
    except urllib.error.HTTPError as error:
        if error.code != http.HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
            raise
        part.unlink()  # longer than the file: another one, or it was whole
        return False
    with answer:
        if answer.status != http.HTTPStatus.PARTIAL_CONTENT:  # the server begins anew
            done = 0
        length = answer.headers.get("Content-Length")
        total = None if length is None else done + int(length)
        with part.open("ab" if done else "wb") as stream, _bar(progress_bar, part.stem, total, done) as bar:
            while piece := answer.read(_PIECE):
                stream.write(piece)
                bar(len(piece))
    return total is None or part.stat().st_size == total


@contextlib.contextmanager
def _bar(wanted: bool, name: str, total: int | None, done: int) -> Iterator[Callable[[int], object]]:
    """A function of the bytes of each piece, which draws a progress bar if it is wanted and tqdm is installed."""
    if not wanted or importlib.util.find_spec("tqdm") is None:
        yield lambda size: None
        return
    from tqdm import tqdm

    with tqdm(desc=name, total=total, initial=done, unit="B", unit_scale=True, leave=False) as bar:
        yield bar.update


def _check_sum(archive: Archive, file: Path) -> None:
    if archive.md5 is None:
        return
    with file.open("rb") as stream:
        found = hashlib.file_digest(stream, "md5").hexdigest()
    if found != archive.md5:
        hint = "Remove it, and call fetch again"
        fail(
            f"fetch: `root` must hold {archive.name} with MD5 {archive.md5}, got {found} in {str(file)!r}. {hint}."
        )


def _unpack(archive: Archive, file: Path, folder: Path) -> None:
    """Unpack beside the folder's content, and move what came out there once it is whole."""
    with tempfile.TemporaryDirectory(dir=folder, prefix=".unpacking-") as place:
        try:
            if file.suffix == ".zip":
                with zipfile.ZipFile(file) as content:
                    content.extractall(place)
            else:
                with tarfile.open(file) as content:
                    content.extractall(place, filter="data")
        except (zipfile.BadZipFile, tarfile.TarError, EOFError):
            hint = "Remove it, and call fetch again"
            fail(
                f"fetch: `root` must hold an archive {archive.name}, got another file in {str(file)!r}. {hint}."
            )
        result = next(Path(place).rglob(archive.result), None)
        if result is None:
            hint = "Compare it with the page of the data set"
            fail(
                f"fetch: `root` must hold {archive.result} in {archive.name}, got none in {str(file)!r}. {hint}."
            )
        shutil.move(result, folder / archive.result)
