"""Documents into sequences: slicing, packing, blocks, assembly."""
