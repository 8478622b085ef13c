"""What a package says of itself to somebody who has never seen one: in English and in Chinese."""

from __future__ import annotations

from pathlib import Path

from recipe.config import Recipe
from recipe.run.canonical import Plain

_TEXTS = Path(__file__).with_name("texts")
_NAMES = ("README.md", "README.zh-CN.md")


def readmes(index: Plain, recipe: Recipe, facts: Plain) -> dict[str, str]:
    """README.md and README.zh-CN.md.

    Args:
        index: what ``handover.yaml`` holds.
        recipe: in force.
        facts: ``stage``, ``num_steps`` and ``spent`` by pool.
    """
    words = {
        "run": index["run"],
        "step": index["step"],
        "num_steps": facts["num_steps"],
        "wheel": index["program"]["wheel"],
        "head": index["ledger"]["head"],
        "pools": _pools(recipe, facts),
        **_holds(index),
        **_habits(recipe),
    }
    return {name: (_TEXTS / name).read_text("utf-8").format(**words) for name in _NAMES}


def _pools(recipe: Recipe, facts: Plain) -> str:
    shares = recipe.shares(facts["stage"])
    return "\n".join(
        f"| {name.replace('|', '&#124;')} | {float(share):.4%} | {facts['spent'][name]:,} |"
        for name, share in shares.items()
    )


def _holds(index: Plain) -> dict[str, str]:
    """Whether tokens and tokenizer files are inside."""
    has_files = bool(index["holds"]["tokenizer_files"])
    has_tokens = index["holds"]["tokens"]
    return {
        "tokens": "The tokens are inside."
        if has_tokens
        else "The tokens themselves are not inside: whoever may have them gets them apart.",
        "tokens_zh": "词元包含在内。" if has_tokens else "词元本身不在其中：有权使用者另行获取。",
        "tokenizer": "" if has_files else "(fingerprint; no files were needed or given)",
        "tokenizer_zh": "" if has_files else "（仅指纹；无需或未附文件）",
    }


def _habits(recipe: Recipe) -> dict[str, str]:
    """What packed documents see, and how labels stand."""
    rules = [recipe.rule(stage, pool) for stage in recipe.stages for pool in recipe.pools]
    apart = {rule.attention != "sequence" for rule in rules}
    restart = {rule.positions == "restart" for rule in rules}
    shifted = recipe.labels == "shifted"
    grouped = any(rule.attention == "group" for rule in rules)
    but, but_zh = (", but for those of one group", "（同一组的除外）") if grouped else ("", "")
    return {
        "attention": _either(apart, f"of one row do not see each other{but}", "of one row see each other"),
        "attention_zh": _either(apart, f"在同一行内互不可见{but_zh}", "在同一行内互相可见"),
        "positions": _either(restart, "restart with every piece", "run on through the row"),
        "positions_zh": _either(restart, "在每一片段重新从 0 开始", "在整行内连续"),
        "labels": "Labels are shifted already: `labels[i]` is the token after `input_ids[i]`."
        if shifted
        else "Labels equal the inputs: the trainer shifts them.",
        "labels_zh": "标签已经移位：`labels[i]` 是 `input_ids[i]` 之后的词元。"
        if shifted
        else "标签等于输入，由训练器移位。",
    }


def _either(values: set[bool], yes: str, no: str) -> str:
    if len(values) == 2:
        return f"{yes} / {no} (by pool and stage: rules.yaml)"
    return yes if True in values else no
