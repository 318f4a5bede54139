//! Tests of apps, in one program: each separate one would compile the client and the loop again.

#[cfg(all(feature = "dev", feature = "karmada-chain"))]
mod chain;
mod client;
mod clusters;
mod converge;
#[cfg(feature = "sim")]
mod gate;
mod idle;
mod proof;
#[cfg(feature = "sim")]
mod related;
mod roles;
