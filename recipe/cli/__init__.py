"""Verbs of the command line: each parses its words, calls one function and prints."""
