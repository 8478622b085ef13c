"""What tests of engines watch: texts that workers are given, processes that are left, killed callers."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

from recipe.text.tokenizers import PROBES, ByteTokenizer


class Watched(ByteTokenizer):
    """Bytes, that write down which texts they are given on which node; one text is deadly, one node stuck."""

    def __init__(self, log, deadly="", deaths=0, stuck=""):
        self.log, self.deadly, self.deaths, self.stuck = str(log), deadly, deaths, stuck

    def encode_batch(self, texts):
        import ray

        if tuple(texts) != PROBES:
            where = ray.get_runtime_context().get_node_id()
            names = [text.partition("the")[0] for text in texts]
            with Path(self.log).open("a") as file:
                file.write("".join(json.dumps([name, where]) + "\n" for name in names))
            if where == self.stuck:
                time.sleep(3600)
            if self.stuck:  # no node takes all tasks before that one has one
                assert wait_until(lambda: self.stuck in Path(self.log).read_text())
            if self.deadly in names and given(self.log)[self.deadly] <= self.deaths:
                os.kill(os.getpid(), signal.SIGKILL)
        return super().encode_batch(texts)


def given(log):
    """How often each text was given to be encoded."""
    return Counter(json.loads(line)[0] for line in Path(log).read_text().splitlines())


def processes_of(folder):
    """Command lines that name a folder."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if str(folder) in words:
            found.append(words[:200])
    return found


def wait_until(holds, seconds=300):
    """Whether it holds within the time."""
    end = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > end:
            return False
        time.sleep(0.1)
    return True


SCRIPT = """
import os, signal, sys
from recipe.text.preparation import PrepareOptions
from recipe.text.prepare import prepare_pool
from recipe.text.tokenizers import ByteTokenizer
source, out, at = sys.argv[1:]
calls = []
def tell(progress):
    calls.append(progress)
    if len(calls) == int(at):
        os.kill(os.getpid(), signal.SIGKILL)
prepare_pool([source], out, ByteTokenizer(), PrepareOptions(engine="ray", workers=2), progress=tell)
"""


def run_script(*words, **environment):
    command = [sys.executable, "-W", "error", "-c", SCRIPT, *map(str, words)]
    done = subprocess.run(command, env={**os.environ, **environment}, check=False, timeout=900)
    return done.returncode
