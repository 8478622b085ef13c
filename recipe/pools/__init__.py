"""Token pools: token files, cards, tables; written once, opened lazily, checked by content."""

from recipe.pools.card import Card, MaxId, extent_units
from recipe.pools.finding import Finding
from recipe.pools.foreign.form import Form
from recipe.pools.growth import Prefix, extend_pool, grown_from
from recipe.pools.opening import open_pool
from recipe.pools.pool import Pool
from recipe.pools.sections import Section
from recipe.pools.table import Row
from recipe.pools.views import View
from recipe.pools.write import write_pool
from recipe.pools.writer import PoolWriter

__all__ = [
    "Card",
    "Finding",
    "Form",
    "MaxId",
    "Pool",
    "PoolWriter",
    "Prefix",
    "Row",
    "Section",
    "View",
    "extend_pool",
    "extent_units",
    "grown_from",
    "open_pool",
    "write_pool",
]
