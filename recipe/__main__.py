"""``python -m recipe`` is the command ``recipe``."""

from recipe.cli.main import main

if __name__ == "__main__":
    raise SystemExit(main())
