//! Other people's runtimes doing the same work.
