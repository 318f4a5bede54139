//! Validating admission policies and their bindings: reads what is about to be stored, hands on the first denial.
//!
//! Upstream: `k8s.io/apiserver/pkg/admission/plugin/policy/validating/{dispatcher,validator}.go`.

use std::{collections::BTreeMap, sync::Arc};

use http::StatusCode;
use serde_json::{Map, Value};

use super::{
    Attributes, GROUP,
    conditions::{Cel, Fit, Scope, fits, to_cel},
    matching,
};
use crate::{
    selector::selects,
    status::{GroupResource, Refusal},
    store::State,
};

const KIND: &str = "ValidatingAdmissionPolicy";

/// What one validation has against the object.
struct Violation {
    message: String,
    reason: String,
}

/// A policy that a binding puts to work.
pub(super) struct Bound {
    pub(super) policy: Arc<Value>,
    pub(super) binding: Arc<Value>,
}

impl Bound {
    pub(super) fn named(&self, kind: &str) -> String {
        let name = |object: &Value| object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        format!("{kind} '{}' with binding '{}'", name(&self.policy), name(&self.binding))
    }

    /// Whether both are about a request.
    pub(super) fn fits(&self, state: &State, attributes: &Attributes<'_>) -> bool {
        constraints_fit(state, &self.policy["spec"]["matchConstraints"], attributes)
            && constraints_fit(state, &self.binding["spec"]["matchResources"], attributes)
    }

    fn does(&self, action: &str) -> bool {
        self.binding["spec"]["validationActions"].as_array().into_iter().flatten().any(|known| known == action)
    }
}

/// All policies of a kind with their bindings, by name.
pub(super) fn bound(state: &State, kind: &str) -> Vec<Bound> {
    let of = |resource: &str| GroupResource::new(GROUP, &format!("{kind}admission{resource}"));
    let bindings: Vec<Arc<Value>> = state.objects(&of("policybindings"), None).collect();
    let policies = of("policies");
    let with_bindings = state.objects(&policies, None).flat_map(|policy| {
        let own = bindings.iter().filter(|binding| binding["spec"]["policyName"] == policy["metadata"]["name"]);
        own.map(|binding| Bound { policy: policy.clone(), binding: binding.clone() }).collect::<Vec<_>>()
    });
    with_bindings.collect()
}

/// Whether constraints are about a request.
fn constraints_fit(state: &State, constraints: &Value, attributes: &Attributes<'_>) -> bool {
    let policy = constraints["matchPolicy"].as_str().unwrap_or("Equivalent");
    let matches = |rules: &Value| matching::matching_resource(state, rules, policy, attributes).is_some();
    matching::namespace_fits(state, &constraints["namespaceSelector"], attributes)
        && matching::object_fits(&constraints["objectSelector"], attributes)
        && (constraints["resourceRules"].as_array().is_none_or(Vec::is_empty) || matches(&constraints["resourceRules"]))
        && !matches(&constraints["excludeResourceRules"])
}

/// Asks all policies that are about a request.
///
/// # Errors
/// One of them denies it.
pub(super) fn validate(state: &State, attributes: &Attributes<'_>) -> Result<(), Refusal> {
    let mut denial = None;
    for bound in bound(state, "validating") {
        let (policy, binding) = (&bound.policy["spec"], &bound.binding["spec"]);
        if !bound.fits(state, attributes) {
            continue;
        }
        let violations = match parameters(state, policy, binding, attributes) {
            Ok(all) => all.iter().flat_map(|one| violations(state, &bound, one.as_deref(), attributes)).collect(),
            Err(_) if policy["failurePolicy"] == "Ignore" => Vec::new(),
            Err(why) => {
                vec![Violation { message: format!("failed to configure binding: {why}"), reason: String::new() }]
            }
        };
        for Violation { message, reason } in violations {
            if bound.does("Warn") {
                attributes.call.session.warn(&format!("Validation failed for {}: {message}", bound.named(KIND)));
            }
            if bound.does("Deny") && denial.is_none() {
                denial = Some(denied(attributes, &format!("{} denied request: {message}", bound.named(KIND)), &reason));
            }
        }
    }
    denial.map_or(Ok(()), Err)
}

/// A denial; its message begins as that of everything forbidden, whatever its reason is.
fn denied(attributes: &Attributes<'_>, why: &str, reason: &str) -> Refusal {
    let name = if attributes.name.is_empty() { "Unknown" } else { &attributes.name };
    let mut refusal = Refusal::forbidden(&attributes.call.resource.of, name, why);
    refusal.reason = if reason.is_empty() { "Invalid".into() } else { reason.to_owned().into() };
    refusal.code = match reason {
        "Forbidden" => StatusCode::FORBIDDEN,
        "Unauthorized" => StatusCode::UNAUTHORIZED,
        "RequestEntityTooLarge" => StatusCode::PAYLOAD_TOO_LARGE,
        _ => StatusCode::UNPROCESSABLE_ENTITY,
    };
    refusal.details["causes"] = serde_json::json!([{ "message": why }]);
    refusal
}

/// The objects that a policy is evaluated with, one after the other; `None` stands for no parameters.
///
/// # Errors
/// There are none, and the binding says that there have to be.
pub(super) fn parameters(
    state: &State,
    policy: &Value,
    binding: &Value,
    attributes: &Attributes<'_>,
) -> Result<Vec<Option<Arc<Value>>>, String> {
    let (kind, reference) = (&policy["paramKind"], &binding["paramRef"]);
    if kind.is_null() || reference.is_null() {
        return Ok(vec![None]);
    }
    let api_version = kind["apiVersion"].as_str().unwrap_or_default();
    let mut known = state
        .registry
        .all()
        .filter(|resource| resource.api_version() == api_version && kind["kind"] == resource.kind());
    let Some(resource) = known.next() else {
        let kind = kind["kind"].as_str().unwrap_or_default();
        return Err(format!("failed to find resource referenced by paramKind: '{api_version}, Kind={kind}'"));
    };
    let named = reference["namespace"].as_str().filter(|namespace| !namespace.is_empty());
    let namespace = if resource.listed.namespaced { named.unwrap_or(&attributes.call.namespace) } else { "" };
    let found: Vec<Option<Arc<Value>>> = match reference["name"].as_str().filter(|name| !name.is_empty()) {
        Some(name) => state.get(&resource.of, &(namespace.into(), name.into())).into_iter().map(Some).collect(),
        None => state
            .objects(&resource.of, Some(namespace))
            .filter(|object| selects(&reference["selector"], &object["metadata"]["labels"]))
            .map(Some)
            .collect(),
    };
    match reference["parameterNotFoundAction"].as_str() {
        Some("Deny") if found.is_empty() => {
            Err("no params found for policy binding with `Deny` parameterNotFoundAction".into())
        }
        _ => Ok(found),
    }
}

/// What expressions of a policy see: its variables one after the other.
pub(super) struct PolicyScope {
    pub(super) scope: Scope,
    /// Variables that cannot be told; that matters only where they are used.
    failed: BTreeMap<String, String>,
}

impl PolicyScope {
    pub(super) fn new(state: &State, policy: &Value, params: Option<&Value>, attributes: &Attributes<'_>) -> Self {
        let mut scope = attributes.scope(state, policy);
        scope.set("params", params.map_or(Cel::Null, to_cel));
        let namespace = matching::namespace_object(state, attributes);
        scope.set("namespaceObject", namespace.as_deref().map_or(Cel::Null, to_cel));
        let mut known = std::collections::HashMap::new();
        let mut all = Self { scope, failed: BTreeMap::new() };
        all.scope.set("variables", to_cel(&Value::Object(Map::new())));
        for variable in policy["variables"].as_array().into_iter().flatten() {
            let text = |field: &str| variable[field].as_str().unwrap_or_default();
            match all.evaluate(text("expression")) {
                Ok(value) => {
                    known.insert(text("name").to_owned(), value);
                    all.scope.set("variables", super::conditions::map(known.clone()));
                }
                Err(why) => drop(all.failed.insert(text("name").into(), why)),
            }
        }
        all
    }

    pub(super) fn evaluate(&self, expression: &str) -> Result<Cel, String> {
        self.scope.evaluate(expression).map_err(|why| {
            let variable = why.strip_prefix("no such key: ").and_then(|name| Some((name, self.failed.get(name)?)));
            variable.map_or(why.clone(), |(name, why)| format!("composited variable {name:?} fails to evaluate: {why}"))
        })
    }
}

fn violations(state: &State, bound: &Bound, params: Option<&Value>, attributes: &Attributes<'_>) -> Vec<Violation> {
    let policy = &bound.policy["spec"];
    let ignores = policy["failurePolicy"] == "Ignore";
    let failure = |message: String| Violation { message, reason: String::new() };
    match fits(&policy["matchConditions"], || PolicyScope::new(state, policy, params, attributes).scope) {
        Fit::Fits => {}
        Fit::FitsNot => return Vec::new(),
        Fit::Fails(_) if ignores => return Vec::new(),
        Fit::Fails(why) => return vec![failure(why)],
    }
    let scope = PolicyScope::new(state, policy, params, attributes);
    annotate(bound, &scope, attributes);
    let judged = policy["validations"].as_array().into_iter().flatten().filter_map(|validation| {
        let expression = validation["expression"].as_str().unwrap_or_default();
        match scope.evaluate(expression) {
            Ok(Cel::Bool(true)) => None,
            Ok(_) => {
                let reason = validation["reason"].as_str().unwrap_or_default().to_owned();
                Some(Violation { message: message(validation, &scope), reason })
            }
            Err(_) if ignores => None,
            Err(why) => Some(failure(format!("expression '{expression}' resulted in error: {why}"))),
        }
    });
    judged.collect()
}

/// What a violation is told as: the message that is computed, else the one that is written down.
fn message(validation: &Value, scope: &PolicyScope) -> String {
    let text = |field: &str| validation[field].as_str().unwrap_or_default().trim();
    if let Ok(Cel::String(computed)) = scope.evaluate(text("messageExpression")) {
        let computed = computed.trim();
        if !computed.is_empty() && !computed.contains('\n') {
            return computed.to_owned();
        }
    }
    match text("message") {
        "" => format!("failed expression: {}", text("expression")),
        written => written.to_owned(),
    }
}

fn annotate(bound: &Bound, scope: &PolicyScope, attributes: &Attributes<'_>) {
    let policy = bound.policy["metadata"]["name"].as_str().unwrap_or_default();
    for annotation in bound.policy["spec"]["auditAnnotations"].as_array().into_iter().flatten() {
        let text = |field: &str| annotation[field].as_str().unwrap_or_default();
        if let Ok(Cel::String(value)) = scope.evaluate(text("valueExpression")) {
            attributes.call.session.annotate(&format!("{policy}/{}", text("key")), &value);
        }
    }
}
