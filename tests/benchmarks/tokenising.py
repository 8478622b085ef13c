"""Tokenising by ``recipe prepare``, from file to tokens on disk, against the library's own batch encoding.

Counted of prepare: reading, hashing, parsing, tokenising, storing, on all cores, and the start of its
processes; the pass that writes documents in their final order is counted in the figure beside it. A
``tokenizer.json`` is measured twice: as it is (`tiktoken` encodes what it is shown to encode alike), and with
a rule that is left to `tokenizers`.

With ``RECIPE_TOKENIZERS`` (a folder with ``qwen3/tokenizer.json`` and ``qwen3/qwen.tiktoken``) and
``RECIPE_TEXTS`` (a JSON-lines file) in the environment, these are measured; else a made text and vocabulary.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import time
from base64 import b64encode
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random
from statistics import median
from typing import Any

import tiktoken
import tokenizers

from recipe.text.preparation import PrepareOptions, Progress
from recipe.text.prepare import prepare_pool
from recipe.text.sources import ReadOptions
from recipe.text.tokenizers import JsonTokenizer, RankTokenizer, Tokenizer, load_tokenizer
from recipe.text.tokenizers.rank_files import as_bytes
from recipe.text.training import TrainOptions, train_tokenizer
from tests.benchmarks.figures import Figure

CORES = len(os.sched_getaffinity(0))
ROUNDS = 2
TIMES = {"tokenizer.json": 1, "tiktoken": 2}
"""How often the text is taken: the start of processes counts for little in what people prepare."""
BYTES = 64 << 20
CHUNK = 1 << 20


@dataclass(frozen=True)
class Took:
    """Seconds by the clock, and of processors, children included."""

    wall: float
    cpu: float


def measure(scratch: Path) -> Iterator[Figure]:
    """Both libraries, in turn with prepare."""
    single, loaded = material(scratch)
    for tokenizer in loaded:
        source = scratch / "source.jsonl"
        source.write_bytes(single.read_bytes() * TIMES[tokenizer.kind])
        with source.open(encoding="utf-8") as lines:
            texts = [json.loads(line)["text"] for line in lines]
        size = sum(len(text.encode()) for text in texts)
        raw = _raw(tokenizer)
        ours, base, whole = [], [], []
        for number in range(ROUNDS):
            base.append(_timed(partial(_encode, raw, texts)))
            first, both = _tokenising(source, scratch / f"pool-{number}", tokenizer)
            ours.append(first)
            whole.append(both)
        yield Figure(
            name=f"tokenising, {tokenizer.name}, {tokenizer.kind}, {CORES} cores",
            value=median(b.wall / a.wall for a, b in zip(ours, base, strict=True)),
            unit="x",
            goal=">= 0.9",
            spread=(
                min(b.wall / a.wall for a, b in zip(ours, base, strict=True)),
                max(b.wall / a.wall for a, b in zip(ours, base, strict=True)),
            ),
            against="batch encoding of the same texts in memory, by the clock",
            beside={
                "ratio of processor time": median(b.cpu / a.cpu for a, b in zip(ours, base, strict=True)),
                "ratio with the second pass": median(
                    b.wall / a.wall for a, b in zip(whole, base, strict=True)
                ),
                "of processor time": median(b.cpu / a.cpu for a, b in zip(whole, base, strict=True)),
                "MB": size / 1e6,
                "ours MB/s": size / 1e6 / median(one.wall for one in ours),
                "library MB/s": size / 1e6 / median(one.wall for one in base),
            },
        )


def _tokenising(source: Path, out: Path, tokenizer: Tokenizer) -> tuple[Took, Took]:
    """Prepare's first pass (read, parse, tokenise, store), and both."""
    began, done = _now(), []

    def watch(event: Progress) -> None:
        if event.phase == "write" and not done:
            done.append(_now())

    options = PrepareOptions(workers=CORES, read=ReadOptions(place_ids=True))
    prepare_pool([source], out, tokenizer, options, progress=watch).close()
    done.append(_now())
    shutil.rmtree(out)
    first, both = (Took(one.wall - began.wall, one.cpu - began.cpu) for one in (done[0], done[-1]))
    return first, both


def _timed(work: Callable[[], object]) -> Took:
    began = _now()
    work()
    ended = _now()
    return Took(ended.wall - began.wall, ended.cpu - began.cpu)


def _now() -> Took:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return Took(time.perf_counter(), sum(one.ru_utime + one.ru_stime for one in used))


def _raw(tokenizer: Tokenizer) -> Callable[[list[str]], Any]:
    """What the library itself does with a list of texts on all cores."""
    if isinstance(tokenizer, RankTokenizer):
        ranks = tokenizer.ranks
        plain = tiktoken.Encoding(
            "plain",
            pat_str=ranks.pattern,
            mergeable_ranks=dict(ranks.ranks),
            special_tokens=dict(ranks.special_tokens),
        )
        return lambda texts: plain.encode_ordinary_batch(texts, num_threads=CORES)
    assert isinstance(tokenizer, JsonTokenizer)
    os.environ["TOKENIZERS_PARALLELISM"] = "true"
    file = tokenizers.Tokenizer.from_file(str(tokenizer.path))
    file.encode_special_tokens = True
    return lambda texts: file.encode_batch_fast(texts, add_special_tokens=False)


def _encode(raw: Callable[[list[str]], Any], texts: list[str]) -> None:
    """In calls of a few megabytes, as a user with so much text would."""
    batch: list[str] = []
    size = 0
    for text in texts:
        batch.append(text)
        size += len(text)
        if size >= CHUNK * CORES:
            raw(batch)
            batch, size = [], 0
    raw(batch)


def material(scratch: Path) -> tuple[Path, list[Tokenizer]]:
    """A JSON-lines file and the tokenizers: the ones that the environment names, or made ones."""
    if "RECIPE_TOKENIZERS" in os.environ and "RECIPE_TEXTS" in os.environ:
        folder = Path(os.environ["RECIPE_TOKENIZERS"], "qwen3")
        files = (
            folder / "tokenizer.json",
            _left(folder / "tokenizer.json", scratch),
            folder / "qwen.tiktoken",
        )
        return Path(os.environ["RECIPE_TEXTS"]), [load_tokenizer(file, eos="<|endoftext|>") for file in files]
    source, folder = scratch / "texts.jsonl", scratch / "tokenizer"
    if not source.exists():
        with source.open("w", encoding="utf-8") as file:
            for text in _made():
                file.write(json.dumps({"text": text}) + "\n")
    if not folder.exists():
        lines = source.open(encoding="utf-8")
        texts = (json.loads(line)["text"] for line, _ in zip(lines, range(2000), strict=False))
        train_tokenizer(texts, folder, TrainOptions(vocab_size=8000), made_from={})
    made = load_tokenizer(folder)
    assert isinstance(made, JsonTokenizer)
    ranks = scratch / "ranks.tiktoken"
    words = {as_bytes(token): id for token, id in made.vocabulary().items() if id != made.eos}
    ordered = sorted(words.items(), key=lambda one: one[1])
    ranks.write_bytes(b"".join(b64encode(token) + b" %d\n" % id for token, id in ordered))
    beside = {"pattern": "qwen", "special_tokens": {"<|endoftext|>": made.eos}}
    ranks.with_name("ranks.tiktoken.json").write_text(json.dumps(beside))
    left = load_tokenizer(_left(folder / "tokenizer.json", scratch), eos="<|endoftext|>")
    return source, [made, left, load_tokenizer(ranks)]


def _left(file: Path, scratch: Path) -> Path:
    """The same tokenizer with its rule in brackets: one that is not known, so `tokenizers` encodes it all."""
    content = json.loads(file.read_bytes())
    split = content["pre_tokenizer"]["pretokenizers"][0]["pattern"]
    split["Regex"] = f"(?:{split['Regex']})"
    path = scratch / "left-to-the-library.json"
    path.write_text(json.dumps(content), "utf-8")
    return path


def _made() -> Iterator[str]:
    """Documents of a few kilobytes, of a hundred thousand words as often as words are."""
    chance = Random(1)
    words = [
        "".join(chance.choices("etaoinshrdlucmfwypvbgkqjxz", k=chance.randint(2, 10))) for _ in range(100_000)
    ]
    weights = [1 / (rank + 3) for rank in range(len(words))]
    size = 0
    while size < BYTES:
        drawn = chance.choices(words, weights, k=chance.randint(100, 2000))
        text = " ".join(word if place % 13 else f"{word}.\n" for place, word in enumerate(drawn))
        size += len(text)
        yield text
