"""Screens: many mixtures on small proxies, ranked, the best confirmed."""
