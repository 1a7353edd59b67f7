//! Pirates and the Flying Spaghetti Monster.
