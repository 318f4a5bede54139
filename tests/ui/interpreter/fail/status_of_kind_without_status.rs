//! InterpretStatus needs a kind with a status.
use kctl::{karmada::prelude::*, prelude::*};

#[resource(group = "example.com", version = "v1", kind = "Note", namespaced)]
struct NoteSpec {}

#[interpreter(op = InterpretStatus)]
fn status(_note: &Note) -> Result<i32> {
    Ok(1)
}

fn main() {}
