//! The controller `policies`: reports how many objects a `PropagationPolicy` selects, and which kinds it can't select.

use kctl::{
    kube::core::GroupVersionKind,
    prelude::*,
    watches::{WatchError, Watches},
};

use crate::{
    kinds::{MemberCluster, Placement, PropagationPolicy, PropagationPolicyStatus, ResourceBinding},
    members::{all, unknown},
    templates::may_propagate,
};

/// Interval at which a missing kind is looked up again: a CRD may be installed later.
pub(crate) const CRD_CHECK_INTERVAL: Duration = Duration::from_secs(10);

/// Counts the bindings of a policy, and validates its selectors.
///
/// Problems are written into the status, so that an invalid selector does not affect the other selectors.
/// The watch of bindings keeps the count in the status current.
#[controller(
    of = PropagationPolicy,
    watches = ResourceBinding(map = policy_of),
    watches = MemberCluster(map = all::<PropagationPolicy>),
    name = "policies"
)]
pub(crate) struct Policies {
    /// Looks up the kinds of the control plane.
    pub(crate) watches: Watches,
}

impl Reconcile for Policies {
    /// Counts the bindings, and checks the kind of each selector. The kind has to be served and namespaced, and must
    /// not be one of this program's kinds.
    async fn reconcile(&self, policy: Arc<PropagationPolicy>, cx: Context<Self>) -> Result<Action> {
        let (namespace, name) = (policy.namespace().unwrap_or_default(), policy.name_any());
        let bindings = cx.store::<ResourceBinding>();
        let own = bindings.in_namespace(&namespace).filter(|binding| binding.spec.policy.as_ref() == Some(&name));
        let selected = own.count().try_into()?;
        let (mut problems, mut missing) = (Vec::new(), false);
        for kind in policy.spec.resource_selectors.iter().map(|selector| selector.gvk()) {
            if !may_propagate(&kind) {
                problems.push(format!("{} of {} remains in the control plane", kind.kind, kind.api_version()));
                continue;
            }
            let named = GroupVersionKind::gvk(&kind.group, &kind.version, &kind.kind);
            match self.watches.is_namespaced(&named).await {
                Ok(true) => {}
                Ok(false) => {
                    let (kind, version) = (kind.kind.as_str(), kind.api_version());
                    problems.push(format!(
                        "{kind} of {version} is cluster-scoped: a policy selects objects of its namespace"
                    ));
                }
                Err(unknown @ WatchError::UnknownKind { .. }) => {
                    problems.push(unknown.to_string());
                    missing = true;
                }
                Err(error) => return Err(error.into()),
            }
        }
        let Placement { clusters, weights, .. } = &policy.spec.placement;
        let named = clusters.iter().chain(weights.iter().map(|rule| &rule.cluster));
        problems.extend(unknown(named, &cx.store::<MemberCluster>()));
        problems.dedup();
        cx.patch_status(PropagationPolicyStatus { selected, message: problems.join("; ") }).await?;
        Ok(if missing { Action::requeue(CRD_CHECK_INTERVAL) } else { Action::await_change() })
    }
}

/// Returns the key of the policy that a binding comes from.
fn policy_of(binding: &ResourceBinding, _policies: &Store<PropagationPolicy>) -> Vec<Key<PropagationPolicy>> {
    let namespace = binding.namespace().unwrap_or_default();
    binding.spec.policy.iter().map(|name| Key::namespaced(&namespace, name)).collect()
}
