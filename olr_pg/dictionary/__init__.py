"""Tables and columns as of an SCN, and the row plans that the kernels decode with."""
