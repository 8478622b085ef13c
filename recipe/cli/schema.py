"""``recipe schema``: the JSON Schema of a recipe."""

from __future__ import annotations

import argparse

from recipe.cli.output import print_json
from recipe.config import recipe_schema


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Nothing to declare: the schema is always whole."""
    parser.epilog = (
        "Example:\n  recipe schema > recipe.schema.json\n\n"
        "First line of a recipe for editors that check YAML against it:\n"
        "  # yaml-language-server: $schema=recipe.schema.json"
    )


def execute(args: argparse.Namespace) -> int:
    """Print it."""
    print_json(recipe_schema())
    return 0
