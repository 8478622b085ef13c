"""Run the benchmarks: ``python -m tests.benchmarks [NAME ...]``; see README.md."""

from __future__ import annotations

import argparse
import tempfile
import time
from contextlib import nullcontext
from importlib import import_module
from pathlib import Path

from tests.benchmarks.figures import machine, table, write_json

NAMES = (
    "batches",
    "reading",
    "infilling",
    "aligning",
    "grouping",
    "torch_loading",
    "metadata",
    "packing",
    "schedule",
    "opening",
    "files",
    "manifests",
    "auditing",
    "tracing",
    "command",
    "tokenising",
    "engines",
    "preparing_memory",
    "index_memory",
    "document_bytes",
    "remote",
)


def main() -> int:
    """Measure, print a table, write JSON; exit code 1 if a goal was missed."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(NAMES)}; default: all")
    parser.add_argument("--json", type=Path, help="where to write the figures")
    parser.add_argument("--scratch", type=Path, help="keep the pools here and use them again")
    args = parser.parse_args()
    if unknown := set(args.names) - set(NAMES):
        parser.error(f"no benchmark named {', '.join(sorted(unknown))}; there are {', '.join(NAMES)}")
    figures = []
    print(machine())
    with nullcontext(args.scratch) if args.scratch else tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder).absolute()
        for name in args.names or NAMES:
            began = time.perf_counter()
            for figure in import_module(f"tests.benchmarks.{name}").measure(scratch):
                figures.append(figure)
                print(table([figure]).splitlines()[1], flush=True)
            print(f"{name}: {time.perf_counter() - began:.0f} s", flush=True)
    print(f"\n{table(figures)}")
    if args.json:
        write_json(args.json, figures)
    return 1 if any(figure.reached is False for figure in figures) else 0


if __name__ == "__main__":
    raise SystemExit(main())
