"""What not every system has, and where the library asks for it; `make kernels-windows` checks types for Windows."""

import re

from tests.project.architecture import ROOT

# Signals that Windows has, too, are no matter: SIGINT and SIGTERM.
WORDS = re.compile(
    r"/proc/|\bos\.(?:open|fork|kill|sysconf|getuid|sched_\w+|mkfifo)\b|\bsignal\.(?:alarm|setitimer|SIG(?!INT|TERM|nals)\w+)"
    r"|\b(?:import|from) (?:fcntl|resource|pwd|grp|termios|pty|msvcrt|winreg)\b"
)
# Text whose encoding is left to the system, which is another one on Windows.
UNENCODED = re.compile(
    r"(?<!>>> )\.read_text\(\)|\.open\(\"[rwax]\+?\"\)|(?<![.\w])open\(\w+(?:, \"[rwax]\+?\")?\)"
)
# Each stands under a test of `sys.platform`, or of whether the file is there.
GUARDED = {
    "snnjax/_write.py": ["import fcntl", "import msvcrt", "os.open", "os.open"],
    "snnjax/data/_hdf5_child.py": ["/proc/", "import resource", "os.sysconf"],
    "snnjax/train/results.py": ["import resource"],
}


def found(pattern):
    """What a pattern finds, by source."""
    sources = [*(ROOT / "snnjax").rglob("*.py"), *(ROOT / "xla_ext/pjrt/snnjax_jax_plugin").rglob("*.py")]
    assert len(sources) > 150
    texts = {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in sources}
    return {name: sorted(words) for name, text in texts.items() if (words := pattern.findall(text))}


def test_what_is_not_portable_is_guarded():
    assert found(WORDS) == GUARDED


def test_text_has_an_encoding():
    assert found(UNENCODED) == {}
    assert all(
        map(UNENCODED.search, ("path.read_text()", 'path.open("a+")', "open(path)", 'open(path, "w")'))
    )


def test_what_is_not_portable_is_found():
    lines = ["import resource", "open('/proc/self/maps')", "signal.alarm(3)", "os.fork()", "signal.SIGKILL"]
    assert [bool(WORDS.search(line)) for line in [*lines, "signal.SIGINT", "os.path.exists"]] == [
        True
    ] * 5 + [False] * 2
