//! Tests the flow from a template to its members and back, on embedded and on real API servers.

mod cluster;
mod division;
mod flow;
mod kinds;
mod link;
mod retain;
mod role;
mod rules;
mod simulated;
mod unreachable_member;
mod world;
