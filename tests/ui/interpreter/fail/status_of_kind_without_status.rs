//! InterpretStatus needs a kind with a status.
use kctl::{k8s::api::apps::v1::DeploymentStatus, karmada::prelude::*, prelude::*};

#[resource(group = "example.com", version = "v1", kind = "Note", namespaced)]
struct NoteSpec {}

#[interpreter(op = InterpretStatus)]
fn status(_note: &Note) -> Result<DeploymentStatus> {
    Ok(DeploymentStatus::default())
}

fn main() {}
