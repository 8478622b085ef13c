"""Other people's token files as pools, as they are: raw and ``.npy``, datatrove, MDS, columns of ids."""
