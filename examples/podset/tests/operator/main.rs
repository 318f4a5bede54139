//! Tests of the operator, in one program: each separate one would compile the operator and the client again.

mod cluster;
mod dev;
mod embedded;
mod faults;
mod role;
mod soak;
