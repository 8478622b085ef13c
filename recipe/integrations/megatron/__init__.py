"""The stream inside Megatron's data path, in place of a blend."""

from recipe.integrations.megatron.dataset import MegatronStream

__all__ = ["MegatronStream"]
