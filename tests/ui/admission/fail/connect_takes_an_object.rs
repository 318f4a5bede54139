//! A `connect` request carries options such as `PodExecOptions`, not the object.
use kctl::prelude::*;

#[admission(validate, operations(connect), subresources(exec))]
fn no_shell(_pod: &Pod) -> Result<()> {
    Ok(())
}

fn main() {}
