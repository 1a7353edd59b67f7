//! Nothing: the contenders are in the bench.
