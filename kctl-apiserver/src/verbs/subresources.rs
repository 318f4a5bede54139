//! What is created and not stored: bindings, evictions, tokens, reviews.

use std::sync::Arc;

use http::StatusCode;
use serde_json::{Value, json};

use super::{
    Answer,
    access::{self, Attributes},
    body,
    delete::{Grace, Propagation, remove_object},
    update,
};
use crate::{
    request::{Call, User},
    status::Refusal,
    store::State,
};

/// `POST` to a subresource of an object.
pub(super) fn create(state: &mut State, call: &Call) -> Result<Answer, Refusal> {
    let of = &call.resource.of;
    let object = state.get(of, &call.key()).ok_or_else(|| Refusal::not_found(of, &call.name))?;
    let kind = call.resource.subresource(&call.subresource).map_or("", |listed| &listed.kind);
    let sent = body::read_built_in(call, kind)?;
    match call.subresource.as_str() {
        "binding" => bind(state, call, &object, &sent),
        "eviction" => Ok(evict(state, call, &object, &sent)),
        "token" => Ok(token(state, call, sent)),
        _ => Err(Refusal::method_not_allowed()),
    }
}

fn success(code: StatusCode) -> Answer {
    let status =
        json!({ "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": code.as_u16() });
    Answer { code, ..Answer::ok(status) }
}

/// Gives a pod its node (`pkg/registry/core/pod/storage`, `assignPod`).
fn bind(state: &mut State, call: &Call, pod: &Arc<Value>, binding: &Value) -> Result<Answer, Refusal> {
    let node = binding["target"]["name"].as_str().unwrap_or_default();
    let bound = pod["spec"]["nodeName"].as_str().unwrap_or_default();
    if !bound.is_empty() {
        let why = format!("pod {} is already assigned to node {bound:?}", call.name);
        return Err(Refusal::conflict(&crate::status::GroupResource::new("", "pods/binding"), &call.name, &why));
    }
    let mut new = Value::clone(pod);
    new["spec"]["nodeName"] = node.into();
    let scheduled = json!({ "type": "PodScheduled", "status": "True", "lastProbeTime": null, "lastTransitionTime": state.clock.seconds() });
    let conditions = new["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let others = conditions.into_iter().filter(|condition| condition["type"] != "PodScheduled");
    new["status"]["conditions"] = others.chain([scheduled]).collect();
    update::settle(state, &call.resource.of, call.key(), pod, new);
    Ok(success(StatusCode::CREATED))
}

fn evict(state: &mut State, call: &Call, pod: &Arc<Value>, eviction: &Value) -> Answer {
    let given = eviction["deleteOptions"]["gracePeriodSeconds"].as_i64();
    let grace = given.map_or(Grace::Default, |seconds| Grace::Seconds(seconds.max(0)));
    remove_object(state, &call.resource, &call.key(), pod, Propagation::Background, grace);
    success(StatusCode::CREATED)
}

fn token(state: &mut State, call: &Call, mut request: Value) -> Answer {
    let seconds = request["spec"]["expirationSeconds"].as_i64().unwrap_or(3_600);
    let now = state.clock.now();
    let expires = now.checked_add(jiff::SignedDuration::from_secs(seconds)).unwrap_or(now);
    request["kind"] = "TokenRequest".into();
    request["apiVersion"] = "authentication.k8s.io/v1".into();
    request["spec"]["expirationSeconds"] = seconds.into();
    let token = format!("{}.{}.{}", call.namespace, call.name, state.chance.uid());
    state.add_token(token.clone(), call.key(), expires);
    request["status"] = json!({
        "token": token,
        "expirationTimestamp": crate::clock::seconds(expires),
    });
    Answer { code: StatusCode::CREATED, ..Answer::ok(request) }
}

/// Objects that are questions: the answer is in their status.
pub(super) fn review(state: &State, call: &Call, asked: &Value) -> Option<Value> {
    let mut answered = asked.clone();
    let user = match call.resource.of.resource.as_str() {
        "selfsubjectaccessreviews" => call.user.clone(),
        "subjectaccessreviews" | "localsubjectaccessreviews" => User {
            name: asked["spec"]["user"].as_str().unwrap_or_default().into(),
            groups: asked["spec"]["groups"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(Value::as_str)
                .map(str::to_owned)
                .collect(),
        },
        "selfsubjectreviews" => {
            answered["status"] = json!({ "userInfo": { "username": call.user.name, "groups": call.user.groups } });
            return Some(answered);
        }
        "selfsubjectrulesreviews" => {
            let rules = access::rules(state, &call.user, asked["spec"]["namespace"].as_str().unwrap_or_default());
            let (paths, objects): (Vec<_>, Vec<_>) =
                rules.into_iter().partition(|rule| rule["nonResourceURLs"].is_array());
            answered["status"] = json!({ "resourceRules": objects, "nonResourceRules": paths, "incomplete": false });
            return Some(answered);
        }
        _ => return None,
    };
    let attributes = &asked["spec"]["resourceAttributes"];
    let text = |field: &str| attributes[field].as_str().unwrap_or_default();
    let allowed = access::allowed(
        state,
        &user,
        &Attributes {
            verb: text("verb"),
            group: text("group"),
            resource: text("resource"),
            subresource: text("subresource"),
            namespace: text("namespace"),
            name: text("name"),
        },
    );
    answered["status"] = json!({ "allowed": allowed });
    Some(answered)
}

/// The body of a namespace whose finalizers were changed.
pub(super) fn finalize(state: &mut State, call: &Call) -> Result<Answer, Refusal> {
    let body::Decoded { object: sent, warnings } = body::read(call)?;
    let of = &call.resource.of;
    let old = state.get(of, &call.key()).ok_or_else(|| Refusal::not_found(of, &call.name))?;
    let mut new = Value::clone(&old);
    new["spec"] = sent["spec"].clone();
    let written = update::settle(state, of, call.key(), &old, new);
    Ok(Answer { warnings, ..Answer::ok(written) })
}
