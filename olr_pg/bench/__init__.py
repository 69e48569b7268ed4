"""The benchmark suite: every figure beside an anchor that is measured in the same run."""
