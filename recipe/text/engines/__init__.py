"""Who runs the tasks of a first pass: this process, processes beside it, or a Ray cluster.

An engine takes tasks (number, batch) as they are read, has `Work.run` make a run of each, wherever that may
be, and puts the runs into the spill folder. No engine and no number of workers changes a byte.
"""

from recipe.text.engines.choosing import Engine, check_engine, engine_for

__all__ = ["Engine", "check_engine", "engine_for"]
