"""The verbs of the command line, in the order of `recipe --help`: what each does, examples, its module."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Verb:
    """A verb of the command line: one line about it, examples, and the module that does it."""

    summary: str
    examples: tuple[str, ...]
    module: str


VERBS: dict[str, Verb] = {
    "run": Verb(
        "stream a recipe into files, with ledger and manifests; goes on where it stopped",
        (
            "recipe run",
            "recipe run runs/demo",
            "recipe run my.yaml seed=7 --name trial",
            "recipe run demo -m seed=1,2",
        ),
        "recipe.cli.run",
    ),
    "plan": Verb(
        "what a recipe will draw: shares, tokens, epochs, padding, before any step",
        (
            "recipe plan ten_trillion",
            "recipe plan my.yaml stages.long.tokens=2B --json",
            "recipe plan demo --exact",
        ),
        "recipe.cli.plan",
    ),
    "status": Verb(
        "where a run stands and what it has spent", ("recipe status runs/demo",), "recipe.cli.status"
    ),
    "report": Verb(
        "what a run spent: by stage and pool, or as a datasheet by where its texts come from",
        (
            "recipe report runs/demo",
            "recipe report runs/demo --datasheet --out datasheet.md",
        ),
        "recipe.cli.report",
    ),
    "attach": Verb(
        "put metrics on record that come later than their checkpoint",
        (
            "recipe attach runs/demo --set code loss=1.31 --set sft/short accuracy=0.42",
            "recipe attach runs/demo@12 --metrics evaluation.json",
        ),
        "recipe.cli.attach",
    ),
    "finetune": Verb(
        "a fixed short fine-tuning from a checkpoint, as one of its metrics",
        ("recipe finetune runs/demo@step:64 --data pools/tasks --test pools/held/tasks",),
        "recipe.cli.finetune",
    ),
    "compare": Verb(
        "hold runs against each other at equal steps: tokens, metrics, margins, lineage",
        (
            "recipe compare runs/A runs/B",
            "recipe compare runs/A-* runs/B-* --no-worse-than code.loss=0.01 --rank-by sft/short.accuracy",
            "recipe compare runs/A runs/B --decide runs/B --approved-by NAME --reason 'code loss'",
            "recipe compare runs/A runs/B --open-final --by NAME --reason 'the final report'",
        ),
        "recipe.cli.compare",
    ),
    "adopt": Verb(
        "go on from a branch as the trunk, or amend the trunk by its changes; keeps the evidence",
        (
            "recipe adopt runs/B --approved-by NAME --reason 'code loss' --evidence runs/A",
            "recipe adopt runs/B@7 --as amend --approved-by NAME --reason 'code loss'",
        ),
        "recipe.cli.adopt",
    ),
    "audit": Verb(
        "recompute what a run says it spent, and name what is wrong",
        (
            "recipe audit runs/demo",
            "recipe audit runs/demo --full --json",
            "recipe audit runs/demo --chain-only",
            "recipe audit runs/demo --since @12 --stage long",
        ),
        "recipe.cli.audit",
    ),
    "audit verify": Verb(
        "the acceptance test: of the program, a recipe on its pools, a run, a package",
        (
            "recipe audit verify",
            "recipe audit verify demo seed=7",
            "recipe audit verify runs/demo --sample 1000",
            "recipe audit verify handover-demo --pools-root pools",
        ),
        "recipe.cli.verify",
    ),
    "audit leakage": Verb(
        "whether training reads text of held-out pools: which documents, and where",
        (
            "recipe audit leakage demo --against pools/held/english",
            "recipe audit leakage runs/demo --ngram 30",
        ),
        "recipe.cli.leakage",
    ),
    "handover": Verb(
        "a run as a folder and an archive that another team can check and go on with",
        (
            "recipe handover runs/demo handover-demo",
            "recipe handover runs/demo handover-demo --archive none --with-tokenizer tokenizers/ours",
        ),
        "recipe.cli.handover",
    ),
    "flags": Verb(
        "settings of a trainer that keep to a recipe: Megatron's flags, Transformers' arguments",
        ("recipe flags demo", "recipe flags runs/demo --trainer transformers --json"),
        "recipe.cli.flags",
    ),
    "export": Verb(
        "sequences, or a pool, as files for other programs: Parquet, Megatron, MDS, .npy …",
        (
            "recipe export pools/web --format megatron --out out/web",
            "recipe export runs/demo --format parquet --out out",
            "recipe export demo --format npy --out out --steps 0..48 --dp-size 4 --dp-rank 3",
        ),
        "recipe.cli.export",
    ),
    "seal": Verb(
        "print the head of a run's record in one line, to publish: what came before is provable",
        ("recipe seal runs/demo", "recipe seal runs/demo --json"),
        "recipe.cli.seal",
    ),
    "amend": Verb(
        "change a run's recipe from a checkpoint on; what was spent stays spent",
        (
            "recipe amend runs/demo@12 stages.long.quotas.english=20% --from tutorials --reason 'May evals'",
            "recipe amend runs/demo --at 240 stages.long.tokens=4Mi --reason budget --approved-by Ada --yes",
            "recipe amend runs/demo '+stages.cool={like: long, tokens: 256Ki}' --reason 'a tail' --dry-run",
        ),
        "recipe.cli.amend",
    ),
    "branch": Verb(
        "other runs from a checkpoint of one, which differ by what is named",
        (
            "recipe branch runs/demo@3 more-maths stages.long.quotas.maths=9% --from tutorials",
            "recipe branch runs/demo@12 -m branch=demo_more_code,demo_more_maths seed=1,2,3 --yes",
            "recipe branch runs/demo@12 decay --end-stage '{tokens: 256Ki, quotas: "
            "{english: rest, tutorials: 30%, code_all: 50%, chinese: 1%, maths: 4%}}'",
        ),
        "recipe.cli.branch",
    ),
    "screen": Verb(
        "try many mixtures on small proxies, rank them, confirm the best on the target",
        (
            "recipe screen proxy.yaml simulate_budget=10T --dirichlet 64 --seed 7 --out runs/screen",
            "recipe screen rank runs/screen --metric validation.loss",
            "recipe screen confirm runs/screen --metric validation.loss --top 3 --target runs/big@12",
        ),
        "recipe.cli.screen",
    ),
    "skip": Verb(
        "leave out the data of some steps, as after a loss spike",
        (
            "recipe skip runs/demo --steps 192..200 --reason 'loss spike at 195' --dry-run",
            "recipe skip runs/demo@12 --steps 192..200 --returned --reason 'loss spike at 195'",
        ),
        "recipe.cli.skip",
    ),
    "withdraw": Verb(
        "take documents out of what a run still serves",
        (
            "recipe withdraw runs/demo@12 --document asyncio/locks.py --reason 'take-down' --ticket T-17",
            "recipe withdraw runs/demo --documents ids.txt --reason 'take-down'",
        ),
        "recipe.cli.withdraw",
    ),
    "trace": Verb(
        "from a document to the steps that read it, and from a row back to its sources",
        (
            "recipe trace runs/demo --document asyncio/locks.py",
            "recipe trace runs/demo --step 12 --row 3 --json",
        ),
        "recipe.cli.trace",
    ),
    "inspect": Verb(
        "a row of a run as text: documents, overlap, labels, padding, sources",
        (
            "recipe inspect runs/demo --step 12 --row 3",
            "recipe inspect runs/demo --step 12 --row 3 --html row.html",
            "recipe inspect runs/demo --document asyncio/locks.py",
        ),
        "recipe.cli.inspect",
    ),
    "new": Verb(
        "write a commented recipe from a folder of pools, or from a Megatron blend",
        ("recipe new pools --out my.yaml", "recipe new --megatron-blend blend.txt --out my.yaml"),
        "recipe.cli.new",
    ),
    "prepare": Verb(
        "tokenise text into pools",
        ("recipe prepare pools/web texts/web.jsonl.zst",),
        "recipe.cli.prepare",
    ),
    "tokenizer train": Verb(
        "train a byte-level BPE tokenizer on texts or pools",
        (
            "recipe tokenizer train tokenizers/ours texts/ --vocab-size 32000",
            "recipe tokenizer train tokenizers/ours --pool pools/web --sample 10% --vocab-size 64000",
        ),
        "recipe.cli.tokenizer_train",
    ),
    "tokenizer compare": Verb(
        "tokenizers on the same text: tokens, digits, what comes back, rows",
        (
            "recipe tokenizer compare tokenizers/gpt2 tokenizers/qwen3",
            "recipe tokenizer compare bytes tokenizers/ours --text 'x = 2024' --pool pools/web",
        ),
        "recipe.cli.tokenizer_compare",
    ),
    "pools list": Verb(
        "pools below folders or of a recipe: documents, tokens, tokenizer, size, faults",
        ("recipe pools list pools", "recipe pools list demo --json"),
        "recipe.cli.pools_list",
    ),
    "pools show": Verb(
        "what is in a pool: counts, lengths, tags, what was left out, documents as text",
        (
            "recipe pools show pools/web",
            "recipe pools show pools/web --samples 10 --tokenizer tokenizers/ours",
        ),
        "recipe.cli.pools_show",
    ),
    "pools verify": Verb(
        "whether pools are what they were written as, and what comes back as text",
        (
            "recipe pools verify pools/web pools/code",
            "recipe pools verify pools/web --full --tokenizer bytes",
        ),
        "recipe.cli.pools_verify",
    ),
    "pools refingerprint": Verb(
        "a pool's fingerprint from its contents beside its card's; a lost card anew",
        (
            "recipe pools refingerprint pools/web",
            "recipe pools refingerprint pools/web --write --tokenizer bytes",
        ),
        "recipe.cli.pools_refingerprint",
    ),
    "pools describe": Verb(
        "say where a pool's text comes from: kind, licence, dates, languages, generator",
        ("recipe pools describe pools/web kind=crawled collected=2023-01..2024-05 languages=en",),
        "recipe.cli.pools_describe",
    ),
    "pools overlap": Verb(
        "what pools share: a matrix of the tokens and documents of each that others hold too",
        ("recipe pools overlap pools/web pools/code pools/wiki",),
        "recipe.cli.overlap",
    ),
    "pools dedup": Verb(
        "pools without each other's documents, by priority; tags of all copies stay",
        (
            "recipe pools dedup --out pools/unique pools/code pools/web",
            "recipe pools dedup --out pools/unique pools/web --keep-ids kept/",
        ),
        "recipe.cli.dedup",
    ),
    "pools split": Verb(
        "a pool's documents as pools for training and validation, by group or content",
        ("recipe pools split pools/web --into train=97%,validation=2%,test=1% --out pools/web-split",),
        "recipe.cli.pools_split",
    ),
    "pools texts": Verb(
        "a pool's documents as JSON lines, for tools that find near-duplicates",
        ("recipe pools texts pools/web --out texts/web",),
        "recipe.cli.pools_texts",
    ),
    "pools repart": Verb(
        "other token files for the same pool: parts merged or cut, the fingerprint stays",
        ("recipe pools repart pools/web --part-tokens 1Gi --out pools/web-merged",),
        "recipe.cli.pools_repart",
    ),
    "pools withdraw": Verb(
        "a pool without the text of documents that were taken down",
        (
            "recipe pools withdraw pools/web --documents ids.txt --reason 'request 12' --out pools/web-2",
            "recipe pools withdraw pools/web --document ID --reason 'no 13' --renumber --out pools/web-3",
        ),
        "recipe.cli.pools_withdraw",
    ),
    "pools twins": Verb(
        "whether two pools hold the same documents, tokenised otherwise; tokens by length",
        ("recipe pools twins pools/web pools/web-qwen3",),
        "recipe.cli.pools_twins",
    ),
    "pools recount": Verb(
        "tokens of a pool's text under another tokenizer, exact or with an interval",
        ("recipe pools recount pools/web --under tokenizers/qwen3",),
        "recipe.cli.recount",
    ),
    "schema": Verb(
        "the JSON Schema of a recipe, for editors and checkers",
        ("recipe schema > recipe.schema.json",),
        "recipe.cli.schema",
    ),
}
