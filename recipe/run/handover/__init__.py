"""Handing a run over: what another team needs to go on with it, and to check it."""

from recipe.run.handover.delivery import Handover, Wanted, hand_over_run

__all__ = ["Handover", "Wanted", "hand_over_run"]
