//! The invariants of the control loop, as far as they show from outside: on the embedded API server, under paused time.

mod behaviours;
mod bounds;
mod cache;
mod determinism;
mod gaps;
mod index;
mod informer;
mod keys;
mod limits;
mod outcomes;
mod owners;
mod protocol;
mod reason;
mod rich;
mod role;
mod schema;
mod script;
mod start;
mod tidy;
mod token;
mod undecodable;
mod watch;
mod world;
mod writes;
