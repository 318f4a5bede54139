//! The type of a status implements `Serialize`.
use kctl::{karmada::prelude::*, prelude::*};

struct Reported;

#[interpreter(op = InterpretStatus)]
fn status(_object: &Deployment) -> Result<Reported> {
    Ok(Reported)
}

fn main() {}
