"""From documents to the steps that read them, and from rows back to their sources."""
