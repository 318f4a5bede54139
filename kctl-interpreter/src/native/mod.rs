//! The interpreters of the built-in kinds, one file a kind.
