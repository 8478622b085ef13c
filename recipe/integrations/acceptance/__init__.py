"""The acceptance test: of the program, of a run's own data, of a package that was handed over."""

from recipe.integrations.acceptance.package import verify_package
from recipe.integrations.acceptance.run import Sample, verify_run
from recipe.integrations.acceptance.tiny import verify_program

__all__ = ["Sample", "verify_package", "verify_program", "verify_run"]
