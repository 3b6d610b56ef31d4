"""Downloads from a local server, of small files in the published formats: whole, broken off, damaged, refused."""

import hashlib
import io
import tarfile
import threading
import wave
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from snnjax import data
from snnjax.data._sources import SOURCES
from tests.project.architecture import ROOT


class Server(ThreadingHTTPServer):
    """Serves `files` by path; each answer ends after `most` bytes, and `asked` lists the ranges of requests."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.files: dict[str, bytes] = {}
        self.asked: list[str | None] = []
        self.most = 1 << 30
        self.has_ranges = True


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        content, asked = self.server.files.get(self.path), self.headers.get("Range")
        self.server.asked.append(asked)
        if content is None:
            self.send_error(404)
            return
        start = int(asked.removeprefix("bytes=").removesuffix("-")) if asked and self.server.has_ranges else 0
        if start >= len(content):
            self.send_error(416)
            return
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(len(content) - start))
        self.end_headers()
        self.wfile.write(content[start : start + self.server.most])

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def server(monkeypatch):
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        monkeypatch.setenv("SNNJAX_DATA_MIRROR", f"http://127.0.0.1:{server.server_port}/mirror/")
        yield server
        server.shutdown()
        thread.join()


def zipped(**files: bytes) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for path, content in files.items():
            archive.writestr(path, content)
    return stream.getvalue()


def tarred(**files: bytes) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as archive:
        for path, content in files.items():
            info = tarfile.TarInfo(path)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return stream.getvalue()


def publish(server, monkeypatch, name, *archives: bytes) -> None:
    """Put archives on the server, with their checksums in the table."""
    source = SOURCES[name]
    assert len(source.archives) == len(archives)
    sums = [hashlib.md5(content).hexdigest() for content in archives]
    known = tuple(a._replace(md5=a.md5 and own) for a, own in zip(source.archives, sums, strict=True))
    monkeypatch.setitem(SOURCES, name, source._replace(archives=known))
    server.files = {f"/mirror/{name}/{a.name}": own for a, own in zip(known, archives, strict=True)}


def sound() -> bytes:
    stream = io.BytesIO()
    with wave.open(stream, "wb") as file:
        file.setparams((1, 2, 8000, 0, "NONE", ""))
        file.writeframes((1000 * np.sin(np.arange(800))).astype("<i2").tobytes())
    return stream.getvalue()


def events(server, monkeypatch) -> None:
    """A recording of each digit of N-MNIST in each part: column, row, and polarity with the time in microseconds."""
    one = bytes([3, 7, 0x80, 1, 0])
    parts = [{f"{part}/{digit}/00001.bin": one for digit in range(10)} for part in ("Train", "Test")]
    publish(server, monkeypatch, "nmnist", *(zipped(**part) for part in parts))


def test_page_lists_every_data_set_with_its_page_and_licence() -> None:
    text = (ROOT / "docs/how_to/data.md").read_text()
    rows = {row.split("`")[1].strip('"'): row for row in text.splitlines() if row.startswith('| `"')}
    assert rows.keys() == SOURCES.keys()
    assert all(f"({source.page})" in rows[name] for name, source in SOURCES.items())
    assert all(source.licence in rows[name].replace("`", "") for name, source in SOURCES.items())


def test_archives_are_downloaded_unpacked_and_left_alone_then(server, monkeypatch, tmp_path) -> None:
    events(server, monkeypatch)
    root = data.fetch("nmnist", tmp_path / "new" / "nmnist", progress_bar=True)
    assert sorted(path.name for path in root.iterdir()) == ["Test", "Train"]
    for part in ("train", "test"):
        assert data.load_nmnist(root, part).labels.tolist() == list(range(10))
    server.files = {}
    assert data.fetch("nmnist", root) == root and len(server.asked) == 2


def test_reader_takes_the_folder_that_is_returned(server, monkeypatch, tmp_path) -> None:
    inside = "free-spoken-digit-dataset-1.0.10/recordings"
    publish(server, monkeypatch, "fsdd", tarred(**{f"{inside}/3_theo_7.wav": sound()}))
    words = data.read_fsdd(data.fetch("fsdd", tmp_path))
    assert (words.digit.tolist(), words.repetition.tolist()) == ([3], [7])


@pytest.mark.parametrize("has_ranges", [True, False])
def test_download_that_breaks_off_goes_on_where_it_ended(server, monkeypatch, tmp_path, has_ranges) -> None:
    content = tarred(**{"cifar-10-batches-bin/test_batch.bin": np.random.default_rng(0).bytes(5000)})
    publish(server, monkeypatch, "cifar10", content)
    server.most, server.has_ranges = 1200, has_ranges
    with pytest.raises(OSError, match="got a connection that broke off") as broken:
        data.fetch("cifar10", tmp_path)
    assert "Download cifar-10-binary.tar.gz from https://www.cs.toronto.edu/~kriz/cifar.html" in str(
        broken.value
    )
    assert server.asked == [None, "bytes=1200-", "bytes=2400-" if has_ranges else "bytes=1200-"]
    server.most = 1 << 30
    folder = data.fetch("cifar10", tmp_path)
    assert (folder / "test_batch.bin").stat().st_size == 5000
    assert [path.name for path in tmp_path.iterdir()] == ["cifar-10-batches-bin"]


def test_part_of_another_file_is_thrown_away(server, monkeypatch, tmp_path) -> None:
    publish(server, monkeypatch, "cifar10", tarred(**{"cifar-10-batches-bin/test_batch.bin": b"1"}))
    (tmp_path / "cifar-10-binary.tar.gz.part").write_bytes(bytes(10_000))
    assert (data.fetch("cifar10", tmp_path) / "test_batch.bin").read_bytes() == b"1"


def test_archive_of_a_page_with_a_login_is_unpacked(server, monkeypatch, tmp_path) -> None:
    monkeypatch.delenv("SNNJAX_DATA_MIRROR")
    with pytest.raises(OSError) as refused:
        data.fetch("dvs-gesture", tmp_path)
    assert str(refused.value) == (
        "fetch: `name` must be a data set that can be downloaded, got an address that asks for a visit to its page. "
        "Download DvsGesture.tar.gz from https://ibm.ent.box.com/s/3hiq58ww1pbbjrinh367ykfdf60xsfm8 as "
        f"{str(tmp_path / 'DvsGesture.tar.gz')!r}, and call fetch again."
    )
    content = tarred(**{"DvsGesture/trials_to_train.txt": b"user01_led.aedat\n"})
    publish(server, monkeypatch, "dvs-gesture", content)
    (tmp_path / "DvsGesture.tar.gz").write_bytes(content)
    assert data.fetch("dvs-gesture", tmp_path) == tmp_path / "DvsGesture" and server.asked == []


def test_files_that_are_not_there_or_damaged_are_refused(server, monkeypatch, tmp_path) -> None:
    with pytest.raises(
        OSError, match=r"got the answer 404 from http://127\.0\.0\.1:\d+/mirror/cifar10/cifar-10"
    ):
        data.fetch("cifar10", tmp_path)
    publish(server, monkeypatch, "cifar10", b"no archive")
    file = tmp_path / "cifar-10-binary.tar.gz"
    with pytest.raises(ValueError) as refused:
        data.fetch("cifar10", tmp_path)
    assert str(refused.value) == (
        f"fetch: `root` must hold an archive cifar-10-binary.tar.gz, got another file in {str(file)!r}. "
        "Remove it, and call fetch again."
    )
    right = SOURCES["cifar10"].archives[0].md5
    file.write_bytes(b"damaged")
    with pytest.raises(ValueError) as refused:
        data.fetch("cifar10", tmp_path)
    assert str(refused.value) == (
        f"fetch: `root` must hold cifar-10-binary.tar.gz with MD5 {right}, got {hashlib.md5(b'damaged').hexdigest()} "
        f"in {str(file)!r}. Remove it, and call fetch again."
    )
    file.unlink()
    publish(server, monkeypatch, "cifar10", tarred(other=b"1"))
    with pytest.raises(ValueError) as refused:
        data.fetch("cifar10", tmp_path)
    assert str(refused.value) == (
        f"fetch: `root` must hold cifar-10-batches-bin in cifar-10-binary.tar.gz, got none in {str(file)!r}. "
        "Compare it with the page of the data set."
    )
    assert [path.name for path in tmp_path.iterdir()] == [file.name]
