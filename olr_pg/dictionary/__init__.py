"""Tables and columns as of an SCN, and the row plans the kernels decode with."""
