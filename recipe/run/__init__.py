"""A run on disk: ledger, manifests, the lease, opening, checkpoints."""
