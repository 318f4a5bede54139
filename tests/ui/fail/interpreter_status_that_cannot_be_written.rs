//! A status is written as JSON.
use kctl::prelude::*;

struct Reported;

#[interpreter(op = InterpretStatus)]
fn status(_object: &Deployment) -> Result<Reported> {
    Ok(Reported)
}

fn main() {}
