"""The bytes of the structures that the simulator writes, field by field."""
