//! `ValidatingAdmissionPolicies` and their bindings: evaluate the expressions, and return the first denial.
//!
//! Upstream: `k8s.io/apiserver/pkg/admission/plugin/policy/validating/{dispatcher,validator}.go`.
//!
//! An evaluation has these inputs: the object, the old object, the request, parameters, the namespace, variables and
//! the authorizer. Costs are bounded per expression and per policy (`cel::cost`).

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use http::StatusCode;
use serde_json::{Map, Value};

use super::{
    Attributes, GROUP,
    matching::{self, Versioned},
};
use crate::{
    cel::{
        conditions::{Cel, MatchResult, Scope, fits, to_cel},
        cost::{Budget, CostExceeded},
        map,
    },
    evaluate::{EvaluationError, value_size},
    kinds::admissionregistration::validating_admission_policy,
    request::RequestInfo,
    selector::selects,
    state::State,
    status::{GroupResource, StatusError},
    store::Store,
};

/// A failed validation of a policy.
struct Violation {
    /// The message, without the names of policy and binding.
    message: String,
    /// A reason of `metav1.StatusReason`; empty means `Invalid`.
    reason: String,
    /// Decides if `validationActions` apply.
    part: FailedPart,
}

/// The part of a policy that failed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FailedPart {
    /// An entry of `validations`, a match condition, or an exhausted budget.
    Validation,
    /// An audit annotation that cannot be evaluated. It denies the request even if `validationActions` of the binding
    /// do not include `Deny`.
    Annotation,
}

/// A policy with one of its bindings.
pub(super) struct PolicyBinding {
    /// The stored object.
    pub(super) policy: Arc<Value>,
    /// The binding. Bindings without a policy are filtered out.
    pub(super) binding: Arc<Value>,
}

impl PolicyBinding {
    /// Returns the names of policy and binding in the form of messages.
    pub(super) fn policy_and_binding(&self, kind: &str) -> String {
        let name = |object: &Value| object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        format!("{kind} '{}' with binding '{}'", name(&self.policy), name(&self.binding))
    }

    /// Returns `true` if both the policy and its binding match the request.
    pub(super) fn fits(&self, store: &Store, attributes: &Attributes<'_>) -> bool {
        constraints_fit(store, &self.policy["spec"]["matchConstraints"], attributes)
            && constraints_fit(store, &self.binding["spec"]["matchResources"], attributes)
    }

    /// Returns the resource in the version that the policy matches.
    fn matched_resource(&self, store: &Store, attributes: &Attributes<'_>) -> Option<Versioned> {
        let constraints = &self.policy["spec"]["matchConstraints"];
        let policy = constraints["matchPolicy"].as_str().unwrap_or("Equivalent");
        matching::matching_resource(store, &constraints["resourceRules"], policy, attributes)
    }

    /// Returns `true` if the binding has this validation action: `Deny`, `Warn` or `Audit`.
    fn has_action(&self, action: &str) -> bool {
        self.binding["spec"]["validationActions"].as_array().into_iter().flatten().any(|listed| listed == action)
    }
}

/// Returns all policies of a kind with their bindings, by name, that may match a request.
///
/// `kind` is `validating` or `mutating`. A policy without a binding has no effect.
pub(super) fn matching_bindings(store: &Store, info: &RequestInfo, kind: &str) -> Vec<PolicyBinding> {
    if !matching::takes_policies(info) {
        return Vec::new();
    }
    let admission_resource = |resource: &str| GroupResource::new(GROUP, &format!("{kind}admission{resource}"));
    let bindings: Vec<Arc<Value>> = store.objects(&admission_resource("policybindings"), None).collect();
    let policies = admission_resource("policies");
    let with_bindings = store.objects(&policies, None).flat_map(|policy| {
        let own = bindings.iter().filter(|binding| binding["spec"]["policyName"] == policy["metadata"]["name"]);
        own.map(|binding| PolicyBinding { policy: policy.clone(), binding: binding.clone() }).collect::<Vec<_>>()
    });
    with_bindings.collect()
}

/// Returns `true` if constraints match the request. Absent rules match all requests; exclusions take precedence.
fn constraints_fit(store: &Store, constraints: &Value, attributes: &Attributes<'_>) -> bool {
    let policy = constraints["matchPolicy"].as_str().unwrap_or("Equivalent");
    let matches = |rules: &Value| matching::matching_resource(store, rules, policy, attributes).is_some();
    matching::namespace_fits(store, &constraints["namespaceSelector"], attributes)
        && matching::object_fits(&constraints["objectSelector"], attributes)
        && (constraints["resourceRules"].as_array().is_none_or(Vec::is_empty) || matches(&constraints["resourceRules"]))
        && !matches(&constraints["excludeResourceRules"])
}

/// Evaluates all policies that match the request.
///
/// Each pair of policy and binding is evaluated once per parameter. `validationActions` of the binding decide if a
/// violation denies the request, warns or is audited. All policies are evaluated even after a denial, because they
/// may add warnings and audit annotations.
///
/// # Errors
/// Fails with the first denial.
pub(super) fn validate(state: &State, attributes: &Attributes<'_>) -> Result<(), StatusError> {
    let mut denial = None;
    let kind = validating_admission_policy::KIND.kind;
    for bound in matching_bindings(&state.store, attributes.info, "validating") {
        let (policy, binding) = (&bound.policy["spec"], &bound.binding["spec"]);
        if !bound.fits(&state.store, attributes) {
            continue;
        }
        let ignores = policy["failurePolicy"] == "Ignore";
        // A configuration error denies the request even if `validationActions` do not include `Deny`.
        let mut deny = |why: String, reason: &str| {
            if denial.is_none() {
                denial = Some(denial_error(attributes, &why, reason));
            }
        };
        let all = match parameters(&state.store, policy, binding, attributes) {
            Ok(all) => all,
            Err(_) if ignores => continue,
            Err(why) => {
                deny(format!("{} denied request: {why}", bound.policy_and_binding(kind)), "");
                continue;
            }
        };
        // Expressions see the version that the policy matches.
        let converted = match bound.matched_resource(&state.store, attributes) {
            Some(version) if version != Versioned::for_resource(&attributes.info.resource) => {
                attributes.in_version(state, &version)?
            }
            _ => None,
        };
        let shown = converted.as_ref().unwrap_or(attributes);
        let violations = all.iter().flat_map(|params| violations(&state.store, &bound, params.as_deref(), shown));
        for Violation { message, reason, part } in violations {
            if part == FailedPart::Validation && bound.has_action("Warn") {
                attributes
                    .info
                    .round
                    .warn(&format!("Validation failed for {}: {message}", bound.policy_and_binding(kind)));
            }
            if part == FailedPart::Annotation || bound.has_action("Deny") {
                deny(format!("{} denied request: {message}", bound.policy_and_binding(kind)), &reason);
            }
        }
    }
    denial.map_or(Ok(()), Err)
}

/// Returns the error of a denial. Its message starts like `Forbidden`, for every reason. The code follows the reason;
/// an unknown reason is 422.
fn denial_error(attributes: &Attributes<'_>, why: &str, reason: &str) -> StatusError {
    let name = if attributes.name.is_empty() { "Unknown" } else { &attributes.name };
    let mut status_error = StatusError::forbidden(&attributes.info.resource.id, name, why);
    status_error.reason = if reason.is_empty() { "Invalid".into() } else { reason.to_owned().into() };
    status_error.code = match reason {
        "Forbidden" => StatusCode::FORBIDDEN,
        "Unauthorized" => StatusCode::UNAUTHORIZED,
        "RequestEntityTooLarge" => StatusCode::PAYLOAD_TOO_LARGE,
        _ => StatusCode::UNPROCESSABLE_ENTITY,
    };
    status_error.details["causes"] = serde_json::json!([{ "message": why }]);
    status_error
}

/// The objects that a policy is evaluated with, one after the other. `None` means no parameters.
///
/// A `paramRef` names one object, or selects several by labels. For a namespaced `paramKind`, an absent
/// `paramRef.namespace` means the namespace of the request. Without a match and with `parameterNotFoundAction:
/// Allow`, the list is empty and the policy is not evaluated.
///
/// Upstream: `CollectParams` of `plugin/policy/generic/policy_dispatcher.go`.
///
/// # Errors
/// Fails if no parameter exists and the binding requires one (`parameterNotFoundAction: Deny`), or if parameters
/// cannot be looked up.
pub(super) fn parameters(
    store: &Store,
    policy: &Value,
    binding: &Value,
    attributes: &Attributes<'_>,
) -> Result<Vec<Option<Arc<Value>>>, String> {
    let (kind, reference) = (&policy["paramKind"], &binding["paramRef"]);
    if kind.is_null() {
        return Ok(vec![None]);
    }
    let api_version = kind["apiVersion"].as_str().unwrap_or_default();
    let mut candidates = store
        .registry
        .all()
        .filter(|resource| resource.api_version() == api_version && kind["kind"] == resource.kind_name());
    let Some(resource) = candidates.next() else {
        return Err(format!("spec.paramKind: unknown kind {} of {api_version:?}", kind["kind"]));
    };
    if reference.is_null() {
        return Ok(vec![None]);
    }
    let named = reference["namespace"].as_str().filter(|namespace| !namespace.is_empty());
    let namespace = match (resource.listed.namespaced, named.unwrap_or(attributes.namespace())) {
        (true, "") => {
            return Err("spec.paramRef.namespace: must be set if the policy matches cluster-scoped resources".into());
        }
        (true, namespace) => namespace,
        (false, _) if named.is_none() => "",
        (false, _) => return Err("spec.paramRef.namespace: must not be set for a cluster-scoped paramKind".into()),
    };
    let found: Vec<Option<Arc<Value>>> = match reference["name"].as_str().filter(|name| !name.is_empty()) {
        Some(name) => store.get(&resource.id, &(namespace.into(), name.into())).into_iter().map(Some).collect(),
        None => store
            .objects(&resource.id, Some(namespace))
            .filter(|object| selects(&reference["selector"], &object["metadata"]["labels"]))
            .map(Some)
            .collect(),
    };
    match reference["parameterNotFoundAction"].as_str() {
        Some("Deny") if found.is_empty() => Err("spec.paramRef: no parameters found".into()),
        _ => Ok(found),
    }
}

/// The variables and functions of the expressions of a policy. Its variables are evaluated in order.
pub(super) struct PolicyScope {
    /// The variables and functions.
    pub(super) scope: Scope,
    /// The errors of variables. A failed variable matters only to expressions that use it.
    failed: BTreeMap<String, EvaluationError>,
    /// The costs of variables that no expression has used yet. The first one that does is charged.
    unpaid: BTreeMap<String, UnchargedVariable>,
    /// The cost that all expressions of the policy may still use together.
    budget: Budget,
}

/// A variable whose cost is not charged yet.
struct UnchargedVariable {
    expression: String,
    cost: usize,
}

impl PolicyScope {
    /// Evaluates the variables of a policy.
    ///
    /// Variables may use those before them. A variable that no expression names is skipped.
    pub(super) fn new(store: &Store, policy: &Value, params: Option<&Value>, attributes: &Attributes<'_>) -> Self {
        let mut scope = attributes.scope(store, policy);
        scope.set("params", params.map_or(Cel::Null, to_cel));
        let namespace = matching::namespace_object(store, attributes);
        scope.set("namespaceObject", namespace.as_deref().map_or(Cel::Null, to_cel));
        let mut variables: HashMap<String, Cel> = HashMap::new();
        let mut all = Self { scope, failed: BTreeMap::new(), unpaid: BTreeMap::new(), budget: Budget::OF_POLICY };
        all.scope.set("variables", to_cel(&Value::Object(Map::new())));
        let whole = policy.to_string();
        for variable in policy["variables"].as_array().into_iter().flatten() {
            let text = |field: &str| variable[field].as_str().unwrap_or_default();
            let (name, expression) = (text("name"), text("expression"));
            // Upstream evaluates variables lazily: an unused one costs nothing.
            if !names_variable(&whole, name) {
                continue;
            }
            let value = match all.scope.cost(expression) {
                Ok(cost) => {
                    all.unpaid.insert(name.to_owned(), UnchargedVariable { expression: expression.to_owned(), cost });
                    all.evaluate_uncharged(expression)
                }
                Err(exceeded) => Err(exceeded.into()),
            };
            match value.and_then(|value| value_size::check_variable(&value).map(|()| value)) {
                Ok(value) => {
                    variables.insert(name.to_owned(), value);
                    all.scope.set("variables", map(variables.clone()));
                }
                Err(why) => drop(all.failed.insert(name.into(), why)),
            }
        }
        all
    }

    /// Charges an expression, and the variables that it uses, directly or through others, each once per policy.
    ///
    /// # Errors
    /// Fails if the cost exceeds a limit.
    fn charge_cost(&mut self, expression: &str) -> Result<(), CostExceeded> {
        let mut open = vec![expression.to_owned()];
        while let Some(expression) = open.pop() {
            let used: Vec<String> =
                self.unpaid.keys().filter(|name| names_variable(&expression, name)).cloned().collect();
            for name in used {
                let Some(UnchargedVariable { expression, cost }) = self.unpaid.remove(&name) else { continue };
                self.budget.charge_cost(cost)?;
                open.push(expression);
            }
        }
        let cost = self.scope.cost(expression)?;
        self.budget.charge_cost(cost)
    }

    /// Evaluates an expression.
    ///
    /// # Errors
    /// The expression fails or exceeds a cost limit. `BudgetExceeded` is the limit of the whole policy.
    pub(super) fn evaluate(&mut self, expression: &str) -> Result<Cel, EvaluationError> {
        self.charge_cost(expression)?;
        self.evaluate_uncharged(expression)
    }

    /// Evaluates an expression without charging it. An error about a missing variable is replaced by the error of that
    /// variable.
    fn evaluate_uncharged(&self, expression: &str) -> Result<Cel, EvaluationError> {
        self.scope.evaluate(expression).map_err(|error| {
            let EvaluationError::NoSuchKey(name) = &error else { return error };
            let of_variable = self.failed.get(name).map(|why| format!("the variable {name:?} has no value: {why}"));
            of_variable.map_or_else(|| error.clone(), EvaluationError::Fails)
        })
    }
}

/// Returns `true` if an expression uses a variable. A string that contains the name counts as well.
fn names_variable(text: &str, name: &str) -> bool {
    let reference = format!("variables.{name}");
    let is_letter = |letter: char| letter.is_alphanumeric() || letter == '_';
    text.match_indices(&reference).any(|(offset, _)| !text[offset + reference.len()..].starts_with(is_letter))
}

/// Returns the violations of a policy, with these parameters. The cost of all validations is charged before the first
/// is evaluated: if the budget does not suffice, that is the only violation. Audit annotations get a new budget of the
/// same size.
///
/// With `failurePolicy: Ignore`, errors of expressions are dropped; a result of `false` is never dropped.
fn violations(
    store: &Store,
    bound: &PolicyBinding,
    params: Option<&Value>,
    attributes: &Attributes<'_>,
) -> Vec<Violation> {
    let policy = &bound.policy["spec"];
    let ignores = policy["failurePolicy"] == "Ignore";
    let failure = |message: String| Violation { message, reason: String::new(), part: FailedPart::Validation };
    let failed = |message: String| if ignores { Vec::new() } else { vec![failure(message)] };
    match fits(&policy["matchConditions"], || PolicyScope::new(store, policy, params, attributes).scope) {
        MatchResult::Matches => {}
        MatchResult::DoesNotMatch => return Vec::new(),
        MatchResult::Failed(why) => return failed(why),
    }
    let mut scope = PolicyScope::new(store, policy, params, attributes);
    let text = |value: &Value, field: &str| value[field].as_str().unwrap_or_default().to_owned();
    let validations = policy["validations"].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut judged = Vec::new();
    // If the budget does not suffice, no validation is evaluated.
    let payments: Vec<Result<(), CostExceeded>> =
        validations.iter().map(|rule| scope.charge_cost(&text(rule, "expression"))).collect();
    if payments.contains(&Err(CostExceeded::Budget)) {
        return failed(EvaluationError::BudgetExceeded.to_string());
    }
    for (validation, paid) in validations.iter().zip(payments) {
        let expression = text(validation, "expression");
        match paid.map_err(EvaluationError::from).and_then(|()| scope.evaluate_uncharged(&expression)) {
            Ok(Cel::Bool(true)) => {}
            Ok(_) => judged.push(message(validation, &mut scope)),
            Err(why) => judged.extend(failed(format!("expression {expression:?}: {why}"))),
        }
    }
    scope.budget = Budget::OF_POLICY;
    let unwritten = annotate(bound, &mut scope, attributes).into_iter().flat_map(failed);
    judged.extend(unwritten.map(|violation| Violation { part: FailedPart::Annotation, ..violation }));
    judged
}

/// Returns a violation with the message of `messageExpression`, or else of `message`. The expression for the message is
/// charged.
fn message(validation: &Value, scope: &mut PolicyScope) -> Violation {
    let text = |field: &str| validation[field].as_str().unwrap_or_default().trim();
    let violation =
        |message: String, reason: &str| Violation { message, reason: reason.to_owned(), part: FailedPart::Validation };
    let with_message = |message: &str| violation(message.to_owned(), text("reason"));
    match scope.evaluate(text("messageExpression")) {
        Ok(Cel::String(computed)) => {
            let computed = computed.trim();
            if !computed.is_empty() && !computed.contains('\n') {
                return with_message(computed);
            }
        }
        Err(error @ EvaluationError::BudgetExceeded) => return violation(error.to_string(), ""),
        _ => {}
    }
    match text("message") {
        "" => with_message(&format!("failed expression: {}", text("expression"))),
        written => with_message(written),
    }
}

/// Adds the audit annotations of the policy, whose name prefixes the keys. Returns the errors of those that fail.
fn annotate(bound: &PolicyBinding, scope: &mut PolicyScope, attributes: &Attributes<'_>) -> Vec<String> {
    let policy = bound.policy["metadata"]["name"].as_str().unwrap_or_default();
    let mut failures = Vec::new();
    for annotation in bound.policy["spec"]["auditAnnotations"].as_array().into_iter().flatten() {
        let text = |field: &str| annotation[field].as_str().unwrap_or_default();
        let expression = text("valueExpression");
        match scope.evaluate(expression) {
            Ok(Cel::String(value)) => {
                attributes.info.round.annotate(&format!("{policy}/{}", text("key")), &value);
            }
            Ok(_) => {}
            Err(error @ EvaluationError::BudgetExceeded) => return vec![error.to_string()],
            Err(why) => failures.push(format!("expression {expression:?}: {why}")),
        }
    }
    failures
}

#[cfg(test)]
mod tests {
    use kube::Client;
    use serde_json::json;

    use super::*;
    use crate::ApiServer;

    const GROUP_PATH: &str = "/apis/admissionregistration.k8s.io/v1";
    /// Three nested loops, which cost about 750,000 for 50 items.
    const DEEP: &str = "object.data.all(k, object.data.all(l, object.data.all(m, k != '' && l != '' && m != '')))";

    async fn post(client: &Client, path: &str, body: &Value) -> Result<(), String> {
        let request = http::Request::post(path).body(serde_json::to_vec(body).unwrap()).unwrap();
        client.request::<Value>(request).await.map(drop).map_err(|error| error.to_string())
    }

    /// Returns the messages for a `ConfigMap` with 50 keys.
    async fn validate_spec(spec: &Value) -> Result<(), String> {
        let server = ApiServer::new();
        let client = Client::new(server.service(), "default");
        let rule =
            json!({ "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"] });
        let mut policy = json!({ "metadata": { "name": "p" }, "spec": spec });
        policy["spec"]["matchConstraints"] = json!({ "resourceRules": [rule] });
        post(&client, &format!("{GROUP_PATH}/validatingadmissionpolicies"), &policy).await.unwrap();
        let binding =
            json!({ "metadata": { "name": "p" }, "spec": { "policyName": "p", "validationActions": ["Deny"] } });
        post(&client, &format!("{GROUP_PATH}/validatingadmissionpolicybindings"), &binding).await.unwrap();
        let data: Map<String, Value> = (0..50).map(|nth| (format!("k{nth:02}"), json!("v"))).collect();
        post(&client, "/api/v1/namespaces/default/configmaps", &json!({ "metadata": { "name": "a" }, "data": data }))
            .await
    }

    #[tokio::test]
    async fn expressions_exceeding_the_shared_budget_are_not_evaluated() {
        let dear = (0..14).map(|nth| json!({ "expression": format!("{DEEP} || {nth} == 0") }));
        let denial = validate_spec(&json!({ "validations": dear.collect::<Value>() })).await.unwrap_err();
        assert!(denial.contains(&EvaluationError::BudgetExceeded.to_string()), "{denial}");
    }

    #[test]
    fn variable_names_match_whole_identifiers() {
        assert!(names_variable("variables.a && true", "a"));
        assert!(names_variable("x(variables.ab, variables.a)", "a"));
        assert!(!names_variable("variables.ab", "a"));
    }
}
