"""Pools on object storage: tokens fetched by exact ranges into memory that is bounded, metadata kept here."""
