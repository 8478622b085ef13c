"""Branches: runs that start from a checkpoint of another one."""
