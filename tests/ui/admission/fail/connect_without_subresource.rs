//! Only subresources such as `exec` are connected to.
use kctl::prelude::*;

#[admission(validate, operations(create, connect))]
fn no_shell(_request: &Admission<Pod>) -> Result<()> {
    Err(Denial::because("no shells").into())
}

fn main() {}
