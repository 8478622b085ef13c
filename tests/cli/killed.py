"""A program of its own: runs ``small.yaml`` and kills itself at every touch of the run folder in turn.

``python killed.py FOLDER`` does, for n = 1, 2, …: a child runs the recipe and dies by SIGKILL at its
n-th touch of a file below the run (opened to write, renamed, removed, flushed to disk); a second child
runs the same command to its end. It prints one JSON line per n, with a digest of what the run then holds.
Imports and kernels are paid once, by a whole run before anything forks.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import sys
from pathlib import Path

from recipe.cli.main import main

COMMAND = ["run", "small.yaml", "stages.short.chunk=1024", "stages.long.chunk=1024", "--json"]
EVENTS = ("open", "os.rename", "os.remove", "os.truncate", "os.mkdir", "os.link", "os.rmdir")


def child(kill_at: int) -> int:
    """Run the recipe in a child; its exit code, negative when it was killed."""
    pid = os.fork()
    if pid == 0:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        if kill_at:
            count_touches(kill_at)
        os._exit(main(COMMAND))
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def count_touches(kill_at: int) -> None:
    """Die at the n-th touch."""
    left = kill_at

    def touch() -> None:
        nonlocal left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def hook(event: str, args: tuple[object, ...]) -> None:
        reads = event == "open" and not int(args[2] or 0) & (os.O_WRONLY | os.O_RDWR)
        if event in EVENTS and not reads and any("runs/" in str(arg) for arg in args[:2]):
            touch()

    flush = os.fsync

    def fsync(handle: int) -> None:
        touch()
        flush(handle)
        touch()

    os.fsync = fsync  # type: ignore[assignment]
    sys.addaudithook(hook)


def digest(run_folder: Path) -> str:
    """Of the sequences and their record, and of what the ledger's last row says was spent."""
    found = hashlib.blake2b()
    for path in sorted((run_folder / "sequences").glob("[!.]*")):
        found.update(path.name.encode() + path.read_bytes())
    last = json.loads((run_folder / "ledger.jsonl").read_text().splitlines()[-1])
    found.update(json.dumps([last["kind"], last["step"], last["snapshot"]]).encode())
    return found.hexdigest()


def report(kill_at: int) -> bool:
    """One line; whether the child was killed."""
    shutil.rmtree("runs", ignore_errors=True)
    code = child(kill_at)
    again = child(0)
    print(
        json.dumps({"kill_at": kill_at, "code": code, "again": again, "digest": digest(Path("runs/small"))})
    )
    return code == -signal.SIGKILL


if __name__ == "__main__":
    os.chdir(sys.argv[1])
    stride = int(sys.argv[2])
    main([*COMMAND, "--runs-dir", "warm"])
    print()
    report(0)
    place = 1
    while report(place):
        place += stride
