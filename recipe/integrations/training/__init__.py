"""A reference trainer: a readable GPT over the stream, for comparing mixtures at the scale of a laptop."""
