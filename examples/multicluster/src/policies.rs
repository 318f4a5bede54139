//! `PropagationPolicy`: says how many objects it has.

use kctl::prelude::*;

use crate::kinds::{PropagationPolicy, PropagationPolicyStatus, ResourceBinding};

/// Counts the bindings of a policy.
#[controller(watches = ResourceBinding(map = policy_of), name = "policies")]
pub(crate) async fn policies(policy: Arc<PropagationPolicy>, cx: Context<policies>) -> Result<Action> {
    let (namespace, name) = (policy.namespace().unwrap_or_default(), policy.name_any());
    let bindings = cx.store::<ResourceBinding>();
    let selected =
        bindings.in_namespace(&namespace).filter(|binding| binding.spec.policy.as_ref() == Some(&name)).count();
    cx.patch_status(PropagationPolicyStatus { selected: selected.try_into()? }).await?;
    Ok(Action::await_change())
}

fn policy_of(binding: &ResourceBinding, _policies: &Store<PropagationPolicy>) -> Vec<Key<PropagationPolicy>> {
    let namespace = binding.namespace().unwrap_or_default();
    binding.spec.policy.iter().map(|name| Key::namespaced(&namespace, name)).collect()
}
