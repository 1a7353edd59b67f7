//! Hash tables for keys from outside. The hash function is seeded, so that no sender can choose
//! keys that collide.

/// The hasher of tables with keys from outside.
pub(crate) use foldhash::fast::RandomState as Seeded;

/// A map with keys from outside.
pub(crate) type HashMap<K, V> = hashbrown::HashMap<K, V, Seeded>;
