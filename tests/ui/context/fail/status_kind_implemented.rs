//! Only kctl and `#[resource]` declare that a kind has a status.
use kctl::prelude::*;

struct Mine;

impl kctl::reconcile::HasStatus<Mine> for Secret {
    type Status = kctl::Json;
}

fn main() {}
