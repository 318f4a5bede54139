//! Requests of `exec` are a `connect`, which is not among the default operations.
use kctl::prelude::*;

#[admission(validate, subresources(exec))]
fn no_shell(_request: &Admission<Pod>) -> Result<()> {
    Err(Denial::because("no shells").into())
}

fn main() {}
