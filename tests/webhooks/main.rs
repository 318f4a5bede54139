//! Admission functions and conversions, as API servers and their clients use them.

mod attribute;
mod blocked;
mod kinds;
mod own_conversion;
mod protocol;
mod real_server;
mod schema_derivation;
mod stalled_clients;
mod start;
mod world;
