//! The object of a connection is its options.
use kctl::prelude::*;

#[admission(validate, operations(connect), subresources(exec))]
fn no_shell(_pod: &Pod) -> Result<()> {
    Ok(())
}

fn main() {}
