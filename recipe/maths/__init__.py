"""Numbers in, numbers out: no file, no clock, no global chance."""
