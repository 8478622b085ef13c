"""Runs against each other: metrics, decisions, and what a decision rests on."""
