//! `OverridePolicy`: what is different on some clusters.

use json_patch::Patch;
use kctl::prelude::*;
use serde_json::Value;

use crate::{
    kinds::{MemberCluster, OverridePolicy, OverridePolicyStatus, OverrideRule},
    members::{all, unknown},
    templates::is_selected,
};

/// What makes another object of an object.
const IDENTITY: [&str; 4] = ["/apiVersion", "/kind", "/metadata/name", "/metadata/namespace"];

/// Bytes of JSON that a manifest may have after a policy: no API server stores more.
const MANIFEST_LEN_MAX: usize = 3 << 20;

/// Says whether a policy can be used.
#[controller(watches = MemberCluster(map = all::<OverridePolicy>), name = "overrides")]
pub(crate) async fn overrides(policy: Arc<OverridePolicy>, cx: Context<overrides>) -> Result<Action> {
    let checked = policy.spec.rules.iter().try_for_each(|rule| patch_of(rule).map(drop));
    let mut problems: Vec<_> = checked.err().iter().map(ToString::to_string).collect();
    let named = policy.spec.rules.iter().flat_map(|rule| &rule.clusters);
    problems.extend(unknown(named, &cx.store::<MemberCluster>()));
    cx.patch_status(OverridePolicyStatus { message: problems.join("; ") }).await?;
    Ok(Action::await_change())
}

/// Applies the rules of all policies, by name, that are about the manifest and the cluster.
pub(crate) fn apply(policies: &[Arc<OverridePolicy>], cluster: &str, manifest: &mut Value) -> Result<()> {
    let mut policies: Vec<_> =
        policies.iter().filter(|policy| is_selected(&policy.spec.resource_selectors, manifest)).collect();
    policies.sort_by_key(|policy| policy.name_any());
    for policy in policies {
        let concerns =
            |rule: &&OverrideRule| rule.clusters.is_empty() || rule.clusters.iter().any(|name| name == cluster);
        for rule in policy.spec.rules.iter().filter(concerns) {
            let said = || format!("the OverridePolicy {} on {cluster}", policy.name_any());
            // A policy that does not fit is the user's to mend: its change is seen.
            for operation in patch_of(rule).context(said()).terminal()?.0 {
                json_patch::patch(manifest, &[operation]).context(said()).terminal()?;
                can_be_stored(manifest).context(said()).terminal()?;
            }
        }
    }
    Ok(())
}

/// Fails before a next `copy` doubles what the one before it has doubled.
fn can_be_stored(manifest: &Value) -> Result<()> {
    if manifest.to_string().len() > MANIFEST_LEN_MAX {
        return Err(format!("the manifest is longer than {MANIFEST_LEN_MAX} bytes: copy less").into());
    }
    Ok(())
}

fn patch_of(rule: &OverrideRule) -> Result<Patch> {
    for operation in &rule.patch {
        let path = &operation.path;
        if IDENTITY.iter().any(|field| path == field || path.starts_with(&format!("{field}/"))) || path.is_empty() {
            return Err(format!("the path {path:?} would make another object: override other fields").into());
        }
    }
    let patch = serde_json::from_value(serde_json::to_value(&rule.patch)?);
    patch.context("its patch")
}
