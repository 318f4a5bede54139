//! The controller `overrides`, and the patches that an `OverridePolicy` applies to the manifests for some clusters.

use json_patch::Patch;
use kctl::prelude::*;
use serde_json::Value;

use crate::{
    kinds::{MemberCluster, OverridePolicy, OverridePolicyStatus, OverrideRule},
    members::{all, unknown},
    templates::is_selected,
};

/// Fields that identify an object. A patch must not change them.
const IDENTITY: [&str; 4] = ["/apiVersion", "/kind", "/metadata/name", "/metadata/namespace"];

/// Maximum size of a patched manifest in bytes of JSON. No API server accepts more.
const MANIFEST_LEN_MAX: usize = 3 << 20;

/// Validates a policy, and writes problems into its status.
#[controller(watches = MemberCluster(map = all::<OverridePolicy>), name = "overrides")]
pub(crate) async fn overrides(policy: Arc<OverridePolicy>, cx: Context<overrides>) -> Result<Action> {
    let checked = policy.spec.rules.iter().try_for_each(|rule| patch_of(rule).map(drop));
    let mut problems: Vec<_> = checked.err().iter().map(ToString::to_string).collect();
    let named = policy.spec.rules.iter().flat_map(|rule| &rule.clusters);
    problems.extend(unknown(named, &cx.store::<MemberCluster>()));
    cx.patch_status(OverridePolicyStatus { message: problems.join("; ") }).await?;
    Ok(Action::await_change())
}

/// Applies all policies that select the manifest, in the order of their names, with their rules for the cluster.
///
/// # Errors
/// A patch can't be applied to the manifest. The error is terminal: only a change of the policy helps, which enqueues the
/// binding.
pub(crate) fn apply(policies: &[Arc<OverridePolicy>], cluster: &str, manifest: &mut Value) -> Result<()> {
    let mut policies: Vec<_> =
        policies.iter().filter(|policy| is_selected(&policy.spec.resource_selectors, manifest)).collect();
    policies.sort_by_key(|policy| policy.name_any());
    for policy in policies {
        let concerns =
            |rule: &&OverrideRule| rule.clusters.is_empty() || rule.clusters.iter().any(|name| name == cluster);
        for rule in policy.spec.rules.iter().filter(concerns) {
            let context = || format!("the OverridePolicy {} on {cluster}", policy.name_any());
            for operation in patch_of(rule).context(context()).terminal()?.0 {
                json_patch::patch(manifest, &[operation]).context(context()).terminal()?;
                can_be_stored(manifest).context(context()).terminal()?;
            }
        }
    }
    Ok(())
}

/// Fails if the manifest is too large. It runs after each operation, because each `copy` can double the size of the
/// manifest.
fn can_be_stored(manifest: &Value) -> Result<()> {
    if manifest.to_string().len() > MANIFEST_LEN_MAX {
        return Err(format!("the manifest is longer than {MANIFEST_LEN_MAX} bytes: copy less").into());
    }
    Ok(())
}

/// Returns the patch of a rule.
///
/// # Errors
/// The patch changes the identity of the object, or is not a JSON patch.
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
