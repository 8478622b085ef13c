"""The keys of a recipe at every place, options of later versions, and how values are written."""

from __future__ import annotations

from recipe.config.evaluation import EvaluationConfig, HeldOutConfig
from recipe.config.group import GroupConfig
from recipe.config.model import (
    Batch,
    ModelConfig,
    Packing,
    ParallelConfig,
    PoolConfig,
    QuotaRamp,
    SinkConfig,
    StartConfig,
    TokenizerConfig,
)
from recipe.config.partial import Model
from recipe.config.problems import Vocabulary
from recipe.config.recipe import Recipe
from recipe.config.slicing import SlicingConfig
from recipe.config.stage import Stage
from recipe.config.transform import FimConfig, TransformConfig

TOP_ONLY_WRITTEN = ("every_stage", "curriculum")
"""Top-level keys that are applied before a recipe is whole."""


def keys_of(model: type[Model]) -> list[str]:
    """The keys of a model as a recipe writes them."""
    return [info.alias or name for name, info in model.model_fields.items() if not info.exclude]


_FIM = "fim: {rate: 50%, prefix: 1, middle: 2, suffix: 3}"
_TRANSFORM_EXAMPLES: dict[tuple[str, ...], str] = {
    (): f"transform: {{{_FIM}}}",
    ("fim",): _FIM,
    ("fim", "rate"): "rate: 50%",
    **{("fim", marker): f"{marker}: '<|fim_{marker}|>'" for marker in ("prefix", "middle", "suffix")},
}
_FILE_EXAMPLES = {
    "path": "path: FOLDER, in quotes if it looks like a number",
    "dtype": "dtype: uint16",
    "column": "column: input_ids",
    "documents": "documents: eos, with the id of the mark as eos",
    "boundaries": "boundaries: .csv.gz",
    "empty": "empty: skip",
}

VOCABULARY = Vocabulary(
    keys={
        (): [*keys_of(Recipe), *TOP_ONLY_WRITTEN],
        ("tokenizer",): keys_of(TokenizerConfig),
        ("model",): keys_of(ModelConfig),
        ("parallel",): keys_of(ParallelConfig),
        ("sink",): keys_of(SinkConfig),
        ("evaluation",): keys_of(EvaluationConfig),
        ("evaluation", "pools", "*"): keys_of(HeldOutConfig),
        ("start",): keys_of(StartConfig),
        ("pools", "*"): keys_of(PoolConfig),
        ("pools", "*", "slicing"): keys_of(SlicingConfig),
        ("pools", "*", "transform"): keys_of(TransformConfig),
        ("pools", "*", "transform", "fim"): keys_of(FimConfig),
        ("groups", "*"): keys_of(GroupConfig),
        **{
            (*place, *below): keys
            for place in (("every_stage",), ("stages", "*"))
            for below, keys in (
                ((), [*keys_of(Stage), "like"]),
                (("batch",), keys_of(Batch)),
                (("slicing",), keys_of(SlicingConfig)),
                (("packing",), keys_of(Packing)),
                (("quota_ramp",), keys_of(QuotaRamp)),
                (("transform", "*"), keys_of(TransformConfig)),
                (("transform", "*", "fim"), keys_of(FimConfig)),
            )
        },
    },
    later={},
    later_values={},
    examples={
        ("seed",): "seed: 1",
        ("pools",): "pools: {web: {path: pools/web}}",
        ("pools", "*"): "{path: FOLDER}",
        ("pools", "*", "of"): "the name of a pool with a path, in quotes if it looks like a number",
        ("pools", "*", "where"): "where: {language: en, quality: {min: 0.5}, source: {not: forum}}",
        ("pools", "*", "renamed_from"): "the name the pool had before, in quotes if it looks like a number",
        **{
            (*place, key): how
            for place in (("pools", "*"), ("evaluation", "pools", "*"))
            for key, how in _FILE_EXAMPLES.items()
        },
        **{
            (*place, *below): how
            for place in (("pools", "*", "transform"), ("stages", "*", "transform", "*"))
            for below, how in _TRANSFORM_EXAMPLES.items()
        },
        ("stages", "*", "transform"): f"transform: {{code: {{{_FIM}}}}}",
        ("start",): "start: {weights: FOLDER, prior: 15T}",
        ("start", "weights"): "weights: FOLDER",
        ("start", "revision"): "the revision as text, in quotes if it looks like a number",
        ("policy",): "policy: {_target_: recipe.maths.policies.DynamicLoading, every: 1B}",
        ("policy", "_target_"): "_target_: recipe.maths.policies.DynamicLoading",
        ("policy", "every"): "every: 1B",
        ("trainer",): "trainer: {learning_rate: 3e-4}",
        ("sink",): "sink: parquet, or {format: parquet, rows_per_file: 8192}",
        ("parallel",): "parallel: {tp: 2, cp: 4}",
        ("evaluation",): "evaluation: {pools: {code: pools/held/code}, stride: 512, offset: 256}",
        ("evaluation", "pools"): "pools: {code: pools/held/code}",
        ("evaluation", "pools", "*"): "the pool's folder, or {path: FILES, dtype: uint16, eos: 0}",
        ("groups",): "groups: {code_all: [code, teacher]}",
        ("groups", "*"): "a list of pools, or {pools: [...], within: even}",
        ("groups", "*", "pools"): "[code, teacher]",
        ("stages",): "stages: {main: {tokens: 1B, …}}",
        ("stages", "*"): "{tokens: 1B, context: 4096, batch: {sequences: 512}, quotas: {web: 100%}}",
        ("stages", "*", "context"): "context: 4096",
        ("stages", "*", "batch"): "batch: {sequences: 512}",
        ("stages", "*", "slicing"): "slicing: {window: 4096, stride: 3584}",
        ("stages", "*", "slicing", "stride"): "stride: 3584, or {head: 2048, middle: 4096, tail: 2048}",
        ("stages", "*", "slicing", "density"): "density: {middle: 0.5}",
        ("stages", "*", "slicing", "duplicates"): "duplicates: drop, or 80%",
        ("stages", "*", "packing"): "packing: best_fit",
        ("stages", "*", "packing", "document_multiple"): "document_multiple: 16 or 2*cp",
        ("stages", "*", "packing", "eos_keep"): "eos_keep: 50%",
        ("stages", "*", "quotas"): "quotas: {web: 61.6%, code: rest}",
        ("stages", "*", "weights"): "weights: {web: 3, code: 2}",
        ("stages", "*", "quotas_tokens"): "quotas_tokens: {web: 616k, code: 384k}",
        ("stages", "*", "objective"): "objective: {web: rest, code: 10%}, or null for none",
        ("stages", "*", "quota_ramp"): "quota_ramp: {over: 200B, steps: 64}",
        ("stages", "*", "quota_ramp", "over"): "over: 200B",
        ("stages", "*", "quota_ramp", "steps"): "steps: 64",
        ("name",): "name: trial; in quotes if it looks like a number",
        ("pools_root",): "pools_root: FOLDER",
        ("tokenizer",): "tokenizer: {path: FOLDER} or tokenizer: bytes",
        ("model",): "model: {max_positions: 32768, vocab_size: 151936}",
    },
)
