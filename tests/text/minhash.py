"""Near-duplicates by datatrove's own MinHash: JSON lines in, what is kept and what is removed out.

Run in a process of its own: ``python minhash.py TEXTS WORK`` writes ``WORK/kept`` and ``WORK/removed``.
"""

from __future__ import annotations

import sys
from pathlib import Path

from datatrove.executor.local import LocalPipelineExecutor
from datatrove.pipeline.dedup import MinhashDedupSignature
from datatrove.pipeline.dedup.minhash import (
    MinhashConfig,
    MinhashDedupBuckets,
    MinhashDedupCluster,
    MinhashDedupFilter,
)
from datatrove.pipeline.readers import JsonlReader
from datatrove.pipeline.writers.jsonl import JsonlWriter
from datatrove.utils.hashing import HashConfig
from datatrove.utils.word_tokenizers import WordTokenizer


class Blanks(WordTokenizer):
    """Words between blanks: needs no model of a language."""

    def word_tokenize(self, text: str) -> list[str]:
        return text.split()

    def sent_tokenize(self, text: str) -> list[str]:
        return [text]

    def span_tokenize(self, text: str) -> list[tuple[int, int]]:
        return [(0, len(text))]


def main(texts: Path, work: Path) -> None:
    config = MinhashConfig(num_buckets=14, hashes_per_bucket=8, hash_config=HashConfig(hash_fc="sha1"))
    reader = JsonlReader(str(texts))
    stages = [
        [reader, MinhashDedupSignature(str(work / "signatures"), config, language=Blanks())],
        [MinhashDedupBuckets(str(work / "signatures"), str(work / "buckets"), config=config)],
        [MinhashDedupCluster(str(work / "buckets"), str(work / "remove"), config)],
        [
            reader,
            MinhashDedupFilter(str(work / "remove"), exclusion_writer=JsonlWriter(str(work / "removed"))),
            JsonlWriter(str(work / "kept")),
        ],
    ]
    for number, pipeline in enumerate(stages):
        tasks = config.num_buckets if number == 1 else 1
        LocalPipelineExecutor(pipeline, tasks=tasks, logging_dir=str(work / f"log{number}")).run()


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
