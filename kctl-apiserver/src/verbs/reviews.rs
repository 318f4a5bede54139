//! Objects that are questions about access: the answer is in their status, and nothing is stored.

use serde_json::{Value, json};

use super::{
    access::{self, Attributes},
    create::Writing,
};
use crate::{
    apply,
    request::{Call, User},
    status::{Cause, Refusal},
    store::State,
    tokens,
};

/// The groups of these kinds.
pub(super) const GROUPS: [&str; 2] = ["authorization.k8s.io", "authentication.k8s.io"];

/// The answer to a review; nothing when the call creates something else.
pub(super) fn review(state: &State, call: &Call, asked: &Value) -> Result<Option<Value>, Refusal> {
    if !GROUPS.contains(&call.resource.of.group.as_str()) {
        return Ok(None);
    }
    let mut answered = asked.clone();
    apply::update(&Writing::of(call, state).request(), None, &mut answered);
    if call.resource.listed.namespaced {
        answered["metadata"]["namespace"] = call.namespace.clone().into();
    }
    let spec = &asked["spec"];
    match call.resource.of.resource.as_str() {
        "selfsubjectaccessreviews" => {
            answered["status"] = decided(state, &call.caller.user, spec)?;
        }
        of @ ("subjectaccessreviews" | "localsubjectaccessreviews") => {
            let namespace = text(&spec["resourceAttributes"]["namespace"]);
            if of == "localsubjectaccessreviews" && namespace != call.namespace {
                let what = "must match metadata.namespace";
                return Err(invalid("spec.resourceAttributes.namespace", &namespace.into(), what));
            }
            let user = User { name: text(&spec["user"]).into(), groups: texts(&spec["groups"]) };
            if user.name.is_empty() && user.groups.is_empty() {
                let what = "at least one of user or group must be specified";
                return Err(invalid("spec.user", &"".into(), what));
            }
            answered["status"] = decided(state, &user, spec)?;
        }
        "selfsubjectrulesreviews" => {
            let namespace = text(&spec["namespace"]);
            if namespace.is_empty() {
                return Err(Refusal::bad_request("no namespace on request"));
            }
            let (resources, others) = access::rules_of(state, &call.caller.user, namespace);
            answered["spec"] = json!({});
            answered["metadata"].as_object_mut().map(|meta| meta.remove("managedFields"));
            answered["status"] = json!({ "resourceRules": resources, "nonResourceRules": others, "incomplete": false });
        }
        "selfsubjectreviews" => {
            answered["metadata"] = json!({ "creationTimestamp": state.clock.seconds() });
            answered["status"] = json!({ "userInfo": call.caller.info() });
        }
        "tokenreviews" => {
            let token = text(&spec["token"]);
            if token.is_empty() {
                return Err(Refusal::bad_request("token is required for TokenReview in authentication"));
            }
            answered["status"] = match tokens::bearer(state, token, &texts(&spec["audiences"])) {
                Ok((caller, audiences)) => {
                    json!({ "authenticated": true, "user": caller.info(), "audiences": audiences })
                }
                Err(why) => json!({ "user": {}, "error": why.to_string() }),
            };
        }
        _ => return Ok(None),
    }
    Ok(Some(answered))
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn texts(list: &Value) -> Vec<String> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// The real server names no kind here.
fn invalid(field: &str, value: &Value, what: &str) -> Refusal {
    let message = format!("Invalid value: {value}: {what}");
    Refusal::invalid(GROUPS[0], "", "", &[Cause { reason: "FieldValueInvalid", message, field: field.into() }])
}

fn decided(state: &State, user: &User, spec: &Value) -> Result<Value, Refusal> {
    let (resource, other) = (&spec["resourceAttributes"], &spec["nonResourceAttributes"]);
    if resource.is_object() && other.is_object() {
        let shown = json!({ "Path": text(&other["path"]), "Verb": text(&other["verb"]) });
        let what = "cannot be specified in combination with resourceAttributes";
        return Err(invalid("spec.nonResourceAttributes", &shown, what));
    }
    if resource.is_object() == other.is_object() {
        let what = "exactly one of nonResourceAttributes or resourceAttributes must be specified";
        return Err(invalid("spec.resourceAttributes", &Value::Null, what));
    }
    if other.is_object() {
        let (verb, path) = (text(&other["verb"]), text(&other["path"]));
        let allowed = access::allows_path(state, user, verb, path);
        return Ok(with_reason(allowed, user, access::granted_path(state, user, verb, path)));
    }
    let asked = Attributes {
        verb: text(&resource["verb"]),
        group: text(&resource["group"]),
        resource: text(&resource["resource"]),
        subresource: text(&resource["subresource"]),
        namespace: text(&resource["namespace"]),
        name: text(&resource["name"]),
    };
    Ok(with_reason(access::allowed(state, user, &asked), user, access::granted(state, user, &asked)))
}

/// No binding is the reason for what an administrator may do.
fn with_reason(allowed: bool, user: &User, binding: Option<String>) -> Value {
    let mut status = json!({ "allowed": allowed });
    if let Some(binding) = binding.filter(|_| !access::is_admin(user)) {
        status["reason"] = binding.into();
    }
    status
}
