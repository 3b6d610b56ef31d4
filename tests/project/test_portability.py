"""What not every system has, and where the library asks for it: `make types` checks the branches for Windows."""

import re

from tests.project.architecture import ROOT

# Signals that Windows has, too, are no matter: SIGINT and SIGTERM.
WORDS = re.compile(
    r"/proc/|\bos\.(?:open|fork|kill|sysconf|getuid|sched_\w+|mkfifo)\b|\bsignal\.(?:alarm|setitimer|SIG(?!INT|TERM|nals)\w+)"
    r"|\b(?:import|from) (?:fcntl|resource|pwd|grp|termios|pty|msvcrt|winreg)\b"
)
# Each stands under a test of `sys.platform`, or of whether the file is there.
GUARDED = {
    "snnjax/_write.py": ["import fcntl", "import msvcrt", "os.open", "os.open"],
    "snnjax/data/_hdf5_child.py": ["/proc/", "import resource", "os.sysconf"],
    "snnjax/train/results.py": ["import resource"],
}


def test_what_is_not_portable_is_guarded():
    sources = [*(ROOT / "snnjax").rglob("*.py"), *(ROOT / "xla_ext/pjrt/snnjax_jax_plugin").rglob("*.py")]
    assert len(sources) > 150
    found = {
        str(path.relative_to(ROOT)): sorted(words)
        for path in sources
        if (words := WORDS.findall(path.read_text(encoding="utf-8")))
    }
    assert found == GUARDED


def test_what_is_not_portable_is_found():
    lines = ["import resource", "open('/proc/self/maps')", "signal.alarm(3)", "os.fork()", "signal.SIGKILL"]
    assert [bool(WORDS.search(line)) for line in [*lines, "signal.SIGINT", "os.path.exists"]] == [
        True
    ] * 5 + [False] * 2
