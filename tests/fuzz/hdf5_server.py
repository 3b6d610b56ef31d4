"""Forks a child for each HDF5 file, which takes milliseconds instead of starting Python: run as a script.

For each line of standard input, a JSON list of a path, what to read, and a named pipe to write to, it answers
with two lines: the number of the process, and how it ended.
"""

import json
import os
import signal
import sys

import _hdf5_child  # pyright: ignore[reportMissingImports]  (its folder is in the path, so that forks stay small)
import h5py  # noqa: F401  (the children are to have it)


def serve(line: str) -> None:
    path, what, pipe = json.loads(line)
    number = os.fork()
    if number == 0:
        signal.alarm(60)  # the other end may be gone, and nobody reads the pipe
        with open(pipe, "wb") as stream:
            _hdf5_child.limit_memory()
            _hdf5_child.send_blocks(path, stream, what)
        os._exit(0)
    sys.stdout.write(f"{number}\n")
    sys.stdout.flush()
    _, status = os.waitpid(number, 0)
    sys.stdout.write(f"{os.waitstatus_to_exitcode(status)}\n")
    sys.stdout.flush()


signal.signal(signal.SIGINT, signal.SIG_IGN)  # it ends with its standard input
for each in sys.stdin:
    serve(each)
