"""``evaluation:``: held-out pools, and the windows that score them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pydantic import Field

from recipe.config.files import FilesConfig
from recipe.config.partial import Model
from recipe.config.values import Amount, Context, Count, Text


class HeldOutConfig(FilesConfig):
    """A pool that is measured and never trained on: its folder, or an entry as of `pools` for files."""

    path: Text
    """Its folder, here or as a URL in a store; or token files made elsewhere: a folder, file, prefix or
    pattern. Relative to ``pools_root``, which may be a URL too."""

    @classmethod
    def spelled_out(cls, given: Any) -> Any:
        """Text is a path."""
        return {"path": given} if isinstance(given, str) else given


@dataclass(frozen=True, kw_only=True, slots=True)
class ScoringRule:
    """How documents are cut to be scored: everything resolved."""

    window: int
    """Positions of a row."""
    stride: int
    offset: int


class EvaluationConfig(Model):
    """Held-out pools by area, and a rule of their own by which their tokens are scored once each.

    Stride and offset differ from every rule by which training cuts, so that a number does not profit from
    seams that the model was trained on.
    """

    pools: dict[str, HeldOutConfig] = Field(default_factory=dict)
    """Held-out pools by area: ``{code: pools/held/code}``."""
    window: Context | None = None
    """Positions of a row: what a prediction sees at most; default: the longest stage's ``context``."""
    stride: Count | None = None
    """Tokens scored in a window; default: three eighths of it (half of it is a shorter stage's)."""
    offset: Amount | None = None
    """Tokens scored in a document's first window; default: half of the stride."""

    def resolved(self, longest: int) -> ScoringRule:
        """The rule, defaults filled in, of a recipe whose longest context is known."""
        window = self.window or longest
        stride = self.stride or max(1, 3 * window // 8)
        offset = self.offset if self.offset is not None else stride // 2
        return ScoringRule(window=window, stride=stride, offset=offset)
