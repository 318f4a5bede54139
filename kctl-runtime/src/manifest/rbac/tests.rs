//! The role of a declaration, as rules and as objects.
