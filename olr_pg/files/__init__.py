"""Files: written durably, private or encrypted, mapped for reading, or used to transfer results."""
