"""The stream inside other programs: trainers, their logs, and files that they read."""
