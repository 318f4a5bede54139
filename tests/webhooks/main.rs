//! Admission functions and conversions, as API servers and their clients see them.

mod blocked;
mod boot;
mod both;
mod kinds;
mod once;
mod protocol;
mod start;
mod world;
