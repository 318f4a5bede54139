//! A mutating webhook with an option.
use kctl::prelude::*;

#[admission(mutate, timeout = 3)]
pub fn defaults(site: &mut Site, request: &Admission<Site>) {
    site.spec.replicas.get_or_insert(2);
}
