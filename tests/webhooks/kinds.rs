//! A kind in three versions, with all admission and conversion functions that an API server may call.

use std::{
    collections::BTreeSet,
    sync::atomic::{AtomicUsize, Ordering},
};

use kctl::prelude::*;

pub(crate) mod v1alpha1 {
    use kctl::prelude::*;

    #[resource(group = "hooks.example.com", version = "v1alpha1", kind = "Site", namespaced, storage = false)]
    pub(crate) struct SiteSpec {
        pub host: String,
        #[serde(default)]
        pub size: i32,
    }
}

pub(crate) mod v1beta1 {
    use kctl::prelude::*;

    #[resource(group = "hooks.example.com", version = "v1beta1", kind = "Site", namespaced, storage = false)]
    pub(crate) struct SiteSpec {
        pub hosts: Vec<String>,
        #[serde(default)]
        pub size: i32,
    }
}

#[resource(group = "hooks.example.com", version = "v1", kind = "Site", namespaced)]
pub(crate) struct SiteSpec {
    pub hosts: Vec<String>,
    /// Number of replicas; defaults to one.
    #[serde(default)]
    pub replicas: i32,
    /// Fields that this version does not know; the schema accepts any value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "anything")]
    pub extra: Option<Known>,
}

/// The part of `extra` that the functions know.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Known {
    #[serde(default)]
    pub color: String,
    /// The type sorts them; the object need not.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub tags: BTreeSet<String>,
}

fn anything(
    _generator: &mut kctl_runtime::__private_0_1::schemars::SchemaGenerator,
) -> kctl_runtime::__private_0_1::schemars::Schema {
    kctl::from_json(kctl::json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true })).unwrap()
}

/// Maximum number of replicas.
pub(crate) const REPLICAS_MAX: i32 = 10;

#[admission(mutate)]
fn site_defaults(site: &mut Site) {
    if site.spec.replicas == 0 {
        site.spec.replicas = 1;
    }
    if let Some(extra) = &mut site.spec.extra {
        extra.color = "blue".into();
        extra.tags.remove("obsolete");
    }
}

/// Counts the side effects of an admission function.
pub(crate) static ORDERED: AtomicUsize = AtomicUsize::new(0);

#[admission(validate, operations(create, update, delete), side_effects = NoneOnDryRun)]
async fn site_rules(site: &Site, request: &Admission<Site>) -> Result<()> {
    if !request.dry_run && site.metadata.labels.as_ref().is_some_and(|labels| labels.contains_key("order")) {
        ORDERED.fetch_add(1, Ordering::Relaxed);
    }
    request.audit("user", request.user.name.clone());
    if request.operation == Operation::Delete {
        return match site.annotations().get("keep") {
            Some(why) => Err(Denial::because(format!("it is kept: {why}")).into()),
            None => Ok(()),
        };
    }
    if site.spec.replicas == 1 {
        request.warn("one replica means no replica while it is replaced");
    }
    let mut invalid = Invalid::default();
    if site.spec.replicas > REPLICAS_MAX {
        invalid.field("spec.replicas", site.spec.replicas, format!("must be at most {REPLICAS_MAX}"));
    }
    if site.spec.hosts.is_empty() {
        invalid.required("spec.hosts", "no one could reach it");
    }
    if let Some(old) = &request.old
        && old.spec.hosts.first() != site.spec.hosts.first()
    {
        invalid.forbidden("spec.hosts[0]", "the first host must not change");
    }
    Ok(invalid.finish()?)
}

#[conversion]
fn alpha_to_beta(old: v1alpha1::Site) -> v1beta1::Site {
    // The metadata is left out, so the original object's is kept.
    v1beta1::Site {
        metadata: ObjectMeta::default(),
        spec: v1beta1::SiteSpec { hosts: vec![old.spec.host], size: old.spec.size },
    }
}

#[conversion]
fn beta_to_v1(old: v1beta1::Site) -> Result<Site> {
    let spec = SiteSpec { hosts: old.spec.hosts, replicas: old.spec.size, extra: None };
    Ok(Site { metadata: old.metadata, spec })
}

#[conversion]
async fn v1_to_beta(new: Site) -> Result<v1beta1::Site> {
    let spec = v1beta1::SiteSpec { hosts: new.spec.hosts, size: new.spec.replicas };
    Ok(v1beta1::Site { metadata: new.metadata, spec })
}

#[conversion]
fn beta_to_alpha(new: v1beta1::Site) -> Result<v1alpha1::Site> {
    let mut hosts = new.spec.hosts.into_iter();
    let host = hosts.next().ok_or("spec.hosts is empty")?;
    let mut metadata = new.metadata;
    let others: Vec<String> = hosts.collect();
    if !others.is_empty() {
        metadata.annotations.get_or_insert_default().insert("hooks.example.com/hosts".into(), others.join(" "));
    }
    Ok(v1alpha1::Site { metadata, spec: v1alpha1::SiteSpec { host, size: new.spec.size } })
}

pub(crate) fn app() -> App {
    App::new("sites")
        .admission::<(site_defaults, site_rules)>()
        .conversion::<(alpha_to_beta, beta_to_v1, v1_to_beta, beta_to_alpha)>()
}
