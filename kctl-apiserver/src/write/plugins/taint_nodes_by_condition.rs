//! `TaintNodesByCondition`: adds the taint `not-ready:NoSchedule` to a new Node.
//!
//! Upstream: `Plugin.Admit` in `plugin/pkg/admission/nodetaint/admission.go`.

use serde_json::{Value, json};

use super::Mutation;
use crate::{json_path::push, status::StatusError};

/// Taints a new Node as not ready (`addNotReadyTaint`). The node controller removes the taint when the condition
/// `Ready` is `True`. A taint that was sent is not added twice.
pub(super) fn admit(mutation: &mut Mutation<'_>) -> Result<(), StatusError> {
    if !mutation.creates() {
        return Ok(());
    }
    let taint = json!({ "key": "node.kubernetes.io/not-ready", "effect": "NoSchedule" });
    let is_same = |existing: &Value| existing["key"] == taint["key"] && existing["effect"] == taint["effect"];
    let taints = &mut mutation.object["spec"]["taints"];
    if !taints.as_array().is_some_and(|taints| taints.iter().any(is_same)) {
        push(taints, taint);
    }
    Ok(())
}
