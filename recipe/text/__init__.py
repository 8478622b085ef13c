"""From text to pools: readers of files, tokenizers, and the preparing of token pools from both."""
