"""Run as a process of its own: open a run, serve one batch, say what it took as one line of JSON.

``python -m tests.benchmarks.opened RUN STEP POOLS`` with STEP ``-`` for the last checkpoint; POOLS is the
folder under which opened files count.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import recipe.run.opening
from recipe import open_run


class Opens:
    """Files opened under a folder, by the folder that holds them."""

    def __init__(self, root: str) -> None:
        """Listen to everything Python opens; hooks cannot be taken away again."""
        self._root = root
        self.seen: list[str] = []
        sys.addaudithook(self._note)

    def _note(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open" and str(arguments[0]).startswith(self._root):
            self.seen.append(str(arguments[0]))

    def mapped(self) -> set[str]:
        """Files mapped or held open now, whoever opened them."""
        lines = Path("/proc/self/maps").read_text(encoding="utf-8").splitlines()
        paths = {line.split(maxsplit=5)[-1] for line in lines}
        paths |= {str(one.readlink()) for one in Path("/proc/self/fd").iterdir() if one.is_symlink()}
        return {path for path in paths if path.startswith(self._root)}

    def most(self) -> int:
        """Files of the pool that had most of them opened."""
        files = set(self.seen) | self.mapped()
        return max(Counter(str(Path(file).parent) for file in files).values(), default=0)


def anonymous_mb() -> float:
    """Memory of this process that is no file."""
    for line in Path("/proc/self/status").read_text(encoding="utf-8").splitlines():
        if line.startswith("RssAnon"):
            return int(line.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    """Open, serve, report."""
    path, step, root = sys.argv[1:]
    assert recipe.run.opening  # imports are not what is measured
    opens, before = Opens(root), anonymous_mb()
    wall, cpu = time.perf_counter(), time.process_time()
    with open_run(path, None if step == "-" else int(step)) as run:
        files = opens.most()
        batch = run.stream().batch(run.step)
        took = {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}
        assert (batch["segment_ids"] >= -1).all()
        after = {"files": files, "files_with_first_batch": opens.most(), "mb": anonymous_mb() - before}
        print(json.dumps({**took, **after, "step": run.step}), flush=True)
        if not sys.stdin.isatty():
            sys.stdin.read()  # keep it open until the caller closes the pipe


if __name__ == "__main__":
    main()
