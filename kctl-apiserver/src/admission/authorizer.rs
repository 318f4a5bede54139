//! The variable `authorizer` of CEL expressions: checks with RBAC what the user of a request, or a service account, may
//! do.
//!
//! Upstream: `k8s.io/apiserver/pkg/cel/library/authz.go`. A check under construction is a CEL map of strings; its keys
//! start with `@` or are in [`PARTS`].
//!
//! A check is built step by step, `authorizer.group('apps').resource('deployments').check('create')`, and each step
//! returns a new map. Checks read a snapshot of the RBAC objects, taken when the expression is evaluated.

use std::{collections::HashMap, sync::Arc};

use kube_cel::cel::{
    ExecutionError,
    extractors::This,
    objects::{Key, Map, ResolveResult},
};
use serde_json::Value;

use super::Attributes;
use crate::{
    authorizer::{self, Attributes as AuthorizationAttributes, Snapshot},
    cel::{Cel, Scope, cost::field, map},
    names::NameRule,
    request::User,
    store::Store,
};

/// The user of a check. A key with `@` cannot collide with a part.
const USER: &str = "@user";
/// The groups of the user, a list of strings.
const GROUPS: &str = "@groups";
/// The result in a decision, a boolean.
const ALLOWED: &str = "@allowed";
/// The reason in a decision, empty for a denial and for administrators.
const REASON: &str = "@reason";
/// The parts of a check that functions such as `group(…)` and `resource(…)` set. A check with `path` applies to a path,
/// any other check to a resource.
const PARTS: [&str; 6] = ["group", "resource", "subresource", "namespace", "name", "path"];
/// Parts that RBAC ignores.
const SELECTORS: [&str; 2] = ["fieldSelector", "labelSelector"];

/// Returns `true` if an expression of a webhook or a policy may use `authorizer`. The variable is added only then.
///
/// Searches all strings for the name. A false positive only costs time.
pub(super) fn uses_authorizer(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains("authorizer"),
        Value::Array(items) => items.iter().any(uses_authorizer),
        Value::Object(fields) => fields.values().any(uses_authorizer),
        _ => false,
    }
}

/// Adds the variable and its functions to a scope.
///
/// `authorizer.requestResource` starts with the resource of the request. Service accounts in
/// `serviceAccount(…)` must have valid names; they need not exist.
pub(super) fn add(scope: &mut Scope, store: &Store, attributes: &Attributes<'_>) {
    let info = attributes.info;
    let user = user_entries(&info.caller.user.name, info.caller.user.groups.iter().map(String::as_str));
    let mut of_request = user.clone();
    let parts = [
        ("group", info.resource.id.group.as_str()),
        ("resource", &info.resource.id.resource),
        ("subresource", info.subresource.as_str()),
        ("namespace", &info.namespace),
        ("name", &attributes.name),
    ];
    of_request.extend(parts.map(|(part, value)| (part.to_owned(), text(value))));
    let mut whole = user;
    whole.insert("requestResource".into(), map(of_request));
    scope.set("authorizer", map(whole));
    let context = scope.context();
    for part in PARTS.into_iter().chain(SELECTORS) {
        context.add_function(part, move |This(check): This<Cel>, value: Arc<String>| with(&check, part, &value));
    }
    context.add_function("serviceAccount", |This(_): This<Cel>, namespace: Arc<String>, name: Arc<String>| {
        let wrong = |what: &str| {
            Err(ExecutionError::function_error("serviceAccount", format!("Invalid service account {what}")))
        };
        if NameRule::Subdomain.check(&name).is_some() {
            return wrong("name");
        }
        if NameRule::Label.check(&namespace).is_some() {
            return wrong("namespace");
        }
        // A service account named in an expression is not an authenticated user: it lacks the group
        // `system:authenticated`.
        let groups = ["system:serviceaccounts", &format!("system:serviceaccounts:{namespace}")];
        let user = format!("system:serviceaccount:{namespace}:{name}");
        ResolveResult::Ok(map(user_entries(&user, groups.into_iter())))
    });
    let snapshot = Snapshot::take(store);
    context.add_function("check", move |This(check): This<Cel>, verb: Arc<String>| {
        authorize_check(&snapshot, &check, &verb)
    });
    context.add_function("allowed", |This(decision): This<Cel>| {
        ResolveResult::Ok(Cel::Bool(matches!(field(&decision, ALLOWED), Some(Cel::Bool(true)))))
    });
    context.add_function("reason", |This(decision): This<Cel>| ResolveResult::Ok(text(&text_of(&decision, REASON))));
    // RBAC never returns an error.
    context.add_function("errored", |This(_): This<Cel>| ResolveResult::Ok(Cel::Bool(false)));
    context.add_function("error", |This(_): This<Cel>| ResolveResult::Ok(text("")));
}

/// Returns the entries of a check for a user.
fn user_entries<'a>(name: &str, groups: impl Iterator<Item = &'a str>) -> HashMap<String, Cel> {
    let groups = Cel::List(Arc::new(groups.map(text).collect()));
    [(USER.to_owned(), text(name)), (GROUPS.to_owned(), groups)].into()
}

/// Returns a CEL string.
fn text(value: &str) -> Cel {
    Cel::String(Arc::new(value.to_owned()))
}

/// Returns a string entry of a CEL map, or the empty string.
fn text_of(value: &Cel, name: &str) -> String {
    match field(value, name) {
        Some(Cel::String(text)) => text.to_string(),
        _ => String::new(),
    }
}

/// Returns the check with one more part, or another value of it.
fn with(check: &Cel, part: &str, value: &str) -> ResolveResult {
    let Cel::Map(Map { map: fields }) = check else { return Err(ExecutionError::NoSuchOverload) };
    let mut fields = fields.as_ref().clone();
    fields.insert(Key::String(Arc::new(part.into())), text(value));
    Ok(Cel::Map(Map { map: Arc::new(fields) }))
}

/// Evaluates a check to a decision.
fn authorize_check(snapshot: &Snapshot, check: &Cel, verb: &str) -> ResolveResult {
    let groups = match field(check, GROUPS) {
        Some(Cel::List(groups)) => groups.iter().filter_map(|group| match group {
            Cel::String(group) => Some(group.to_string()),
            _ => None,
        }),
        _ => return Err(ExecutionError::NoSuchOverload),
    };
    let user = User { name: text_of(check, USER), groups: groups.collect() };
    let parts = PARTS.map(|part| text_of(check, part));
    let [group, resource, subresource, namespace, name, path] = parts.each_ref().map(String::as_str);
    let is_allowed = if field(check, "path").is_some() {
        authorizer::allows_path(snapshot, &user, verb, path)
    } else {
        let attributes = AuthorizationAttributes { verb, group, resource, subresource, namespace, name };
        authorizer::is_allowed(snapshot, &user, &attributes)
    };
    let reason = if is_allowed { authorizer::allow_reason(&user) } else { "" };
    Ok(map([(ALLOWED.to_owned(), Cel::Bool(is_allowed)), (REASON.to_owned(), text(reason))]))
}
