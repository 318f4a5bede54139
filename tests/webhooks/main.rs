//! Admission functions and conversions, as API servers and their clients use them.

mod attribute;
mod blocked;
mod boot;
mod both;
mod kinds;
mod once;
mod protocol;
mod silent;
mod start;
mod world;
