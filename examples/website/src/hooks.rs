//! Functions that the API server calls: defaulting, validation, and conversion between the versions.
//!
//! A conversion must be lossless, because API servers convert an object whenever a client reads or writes it in the
//! other version. The old version has a single host, so an annotation carries the other hosts.
use kctl::prelude::*;

use crate::kinds::{Website, WebsiteSpec, v1alpha1};

/// Annotation with the hosts that the old version has no field for. Without it, a round trip would lose them.
const OTHER_HOSTS: &str = "example.com/other-hosts";

/// Defaults to two replicas, so that one can be replaced.
#[admission(mutate)]
pub(crate) fn defaults(site: &mut Website) {
    site.spec.replicas.get_or_insert(2);
}

/// Validates rules that the schema can't express.
#[admission(validate)]
pub(crate) fn rules(site: &Website, request: &Admission<Website>) -> Result<()> {
    let mut invalid = Invalid::default();
    if site.spec.hosts.is_empty() {
        invalid.required("spec.hosts", "no one could reach it");
    }
    if let Some(old) = &request.old
        && old.spec.hosts.first() != site.spec.hosts.first()
    {
        invalid.forbidden("spec.hosts[0]", "the main host must be kept: other systems refer to it");
    }
    if site.spec.replicas == Some(1) {
        request.warn("with one replica the website is down while that is replaced");
    }
    Ok(invalid.finish()?)
}

/// Converts to the stored version. The hosts come from the field and the annotation.
#[conversion]
pub(crate) fn up(old: v1alpha1::Website) -> Website {
    let others = old.annotations().get(OTHER_HOSTS).cloned().unwrap_or_default();
    let hosts = std::iter::once(old.spec.host).chain(others.split_whitespace().map(str::to_owned)).collect();
    Website { metadata: old.metadata, spec: WebsiteSpec { hosts, replicas: old.spec.replicas }, status: old.status }
}

/// Converts to the old version. The first host is stored in the field, and the others in the annotation.
#[conversion]
pub(crate) fn down(new: Website) -> Result<v1alpha1::Website> {
    let mut hosts = new.spec.hosts.into_iter();
    let host = hosts.next().ok_or("spec.hosts is empty")?;
    let (mut metadata, others) = (new.metadata, hosts.collect::<Vec<_>>().join(" "));
    let annotations = metadata.annotations.get_or_insert_default();
    // The annotation of an earlier conversion is overwritten. Otherwise a removed host would come back.
    if !others.is_empty() || annotations.contains_key(OTHER_HOSTS) {
        annotations.insert(OTHER_HOSTS.into(), others);
    }
    let spec = v1alpha1::WebsiteSpec { host, replicas: new.spec.replicas };
    Ok(v1alpha1::Website { metadata, spec, status: new.status })
}
