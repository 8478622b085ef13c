"""The stream inside Megatron's data path, in place of a blend."""

from recipe.integrations.megatron.dataset import MegatronStream
from recipe.integrations.megatron.flags import megatron_flags

__all__ = ["MegatronStream", "megatron_flags"]
