//! A conversion between two versions.
use kctl::prelude::*;

/// The old version had one host.
#[conversion]
pub fn up(old: v1alpha1::Site) -> Result<v1::Site> {
    Ok(v1::Site { metadata: old.metadata, spec: v1::SiteSpec { hosts: vec![old.spec.host] } })
}
