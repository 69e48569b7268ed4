"""The benchmark suite: each figure is compared with an anchor that is measured in the same run."""
