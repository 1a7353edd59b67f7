//! Rules of expressions, one by one.
