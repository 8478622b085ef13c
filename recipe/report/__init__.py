"""What a person reads of a plan, a run or a pool: tables, pages and figures, from values alone."""
