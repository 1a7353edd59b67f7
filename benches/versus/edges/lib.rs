//! An empty library: the contenders are in the benchmark.
