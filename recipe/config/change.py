"""An override, once it is read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from recipe.config.problems import Place

Kind = Literal["set", "add", "force", "delete"]


@dataclass(frozen=True, slots=True)
class Change:
    """One override, read."""

    text: str
    kind: Kind
    key: str
    """Dotted key, or ``group`` / ``group@package`` of Hydra."""
    value: Any = None
    has_value: bool = True

    @property
    def place(self) -> Place:
        """The key's parts."""
        return tuple(self.key.split("."))
