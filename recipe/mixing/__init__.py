"""Shares into a schedule, a schedule into a stream, and what a moment of the stream is."""
