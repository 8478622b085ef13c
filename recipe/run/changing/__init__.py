"""Changes of a run on the way: amendments, policies, skips, withdrawals."""
