//! The kinds with a status are those of kctl and of `#[resource]`.
use kctl::prelude::*;

struct Mine;

impl kctl::reconcile::HasStatus<Mine> for Secret {
    type Status = kctl::Json;
}

fn main() {}
