"""Corpora of several kinds through the whole path, from text to an audited run: to try and to copy."""
