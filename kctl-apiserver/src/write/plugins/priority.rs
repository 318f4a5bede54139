//! `Priority`: a Pod gets the priority of its `PriorityClass`, and only one class is the global default.
//!
//! Upstream: `Plugin.Admit` and `Validate` in `plugin/pkg/admission/priority/admission.go`.

use serde_json::Value;

use super::{Mutation, forbidden, rejection};
use crate::{
    admission::Attributes, kinds::scheduling::priority_class, registry::kind::Subresource, request::RequestInfo,
    status::StatusError, store::Store,
};

/// The preemption policy of a `PriorityClass` that names none, and of a Pod without a class.
const DEFAULT_POLICY: &str = "PreemptLowerPriority";

/// Sets the priority of a new Pod, and keeps the priority of an updated Pod.
pub(super) fn admit(store: &Store, mutation: &mut Mutation<'_>) -> Result<(), StatusError> {
    if mutation.creates() {
        return set_priority(store, mutation.info, mutation.object);
    }
    if let Some(old) = mutation.updates(Subresource::Main) {
        // A client that replaces a Pod may omit these fields. Validation reports a changed value.
        for name in ["priority", "preemptionPolicy"] {
            if mutation.object["spec"][name].is_null() && !old["spec"][name].is_null() {
                mutation.object["spec"][name] = old["spec"][name].clone();
            }
        }
    }
    Ok(())
}

/// Sets the priority of a new Pod: the value of its class, or of the global default class (`admitPod`). If there are
/// several global defaults, the one with the lowest value is used. A priority or policy that the client sent must be
/// equal to the computed one.
fn set_priority(store: &Store, info: &RequestInfo, pod: &mut Value) -> Result<(), StatusError> {
    let named = pod["spec"]["priorityClassName"].as_str().unwrap_or_default().to_owned();
    let kind = &priority_class::KIND;
    let class = if named.is_empty() {
        let defaults = store.objects_of(kind, None).filter(|class| class["globalDefault"] == true);
        defaults.min_by_key(|class| class["value"].as_i64())
    } else {
        let Some(found) = store.object(kind, "", &named) else {
            return Err(forbidden(info, pod, &format!("no PriorityClass with name {named} was found")));
        };
        Some(found)
    };
    let (mut priority, mut policy) = (0, DEFAULT_POLICY.to_owned());
    if let Some(class) = class {
        pod["spec"]["priorityClassName"] = class["metadata"]["name"].clone();
        priority = class["value"].as_i64().unwrap_or(0);
        class["preemptionPolicy"].as_str().unwrap_or(DEFAULT_POLICY).clone_into(&mut policy);
    }
    for (field, computed) in [("priority", Value::from(priority)), ("preemptionPolicy", policy.into())] {
        let value = &pod["spec"][field];
        if !value.is_null() && *value != computed {
            let why = format!("spec.{field}: must be {computed} as the PriorityClass has it, found {value}");
            return Err(forbidden(info, pod, &why));
        }
        pod["spec"][field] = computed;
    }
    Ok(())
}

/// Checks that at most one `PriorityClass` is the global default (`validatePriorityClass`).
pub(super) fn validate(store: &Store, attributes: &Attributes<'_>, class: &Value) -> Result<(), StatusError> {
    let info = attributes.info;
    if !info.subresource.is_main() || class["globalDefault"] != true {
        return Ok(());
    }
    let name = &class["metadata"]["name"];
    let is_other = |other: &Value| other["globalDefault"] == true && other["metadata"]["name"] != *name;
    let Some(other) = store.objects(&info.resource.id, None).find(|other| is_other(other)) else { return Ok(()) };
    let why = format!("PriorityClass {} is the default already", other["metadata"]["name"]);
    Err(rejection(attributes, &why))
}
