//! Validation of `FlowSchema` and `PriorityLevelConfiguration` objects.
//!
//! Upstream: `pkg/apis/flowcontrol/validation/validation.go`.

use serde_json::Value;

use crate::{field::Field, field_errors::Errors, names::NameRule};

/// Highest `matchingPrecedence`. The lowest, 1, belongs to the schema `exempt`.
const PRECEDENCE_MAX: i64 = 10_000;
/// Name of the schema and of the level that are exempt from all limits. kube-apiserver creates
/// both.
const EXEMPT: &str = "exempt";
/// Verbs of requests, sorted as the error lists them. `*` matches all.
const VERBS: [&str; 9] = ["create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch"];
/// Maximum number of queues of a level (`priorityLevelConfigurationQueuingMaxQueues`): 10 million.
const QUEUES_MAX: i64 = 10_000_000;

/// Validates a `FlowSchema`. The priority level that it names need not exist.
pub(crate) fn validate_flow_schema(object: &Value, errors: &mut Errors) {
    let spec = Field::new(&object["spec"], "spec", errors);
    let (precedence, method) = (spec.at("matchingPrecedence"), spec.at("distinguisherMethod"));
    let first = if object["metadata"]["name"] == EXEMPT { 1 } else { 2 };
    precedence.in_range(first, PRECEDENCE_MAX);
    method.when_present(|method| method.at("type").always_one_of(&["ByNamespace", "ByUser"]));
    spec.at("priorityLevelConfiguration").at("name").required_name(NameRule::Subdomain);
    spec.at("rules").items().for_each(|rule| validate_rule(&rule));
}

/// Validates one rule. It matches a request that has one of the subjects and fits one of the resource or path rules.
fn validate_rule(rule: &Field<'_>) {
    let [subjects, resources, paths] = ["subjects", "resourceRules", "nonResourceRules"].map(|name| rule.at(name));
    subjects.required_if(subjects.is_empty());
    subjects.items().for_each(|subject| validate_subject(&subject));
    let has_none = resources.is_empty() && paths.is_empty();
    rule.required_with_if(has_none, "must have resourceRules or nonResourceRules");
    resources.items().for_each(|rule| validate_resource_rule(&rule));
    paths.items().for_each(|rule| validate_path_rule(&rule));
}

/// Validates a subject, which has the field of its kind and no other.
fn validate_subject(subject: &Field<'_>) {
    /// Kinds of subjects, each with its field.
    const KINDS: [(&str, &str); 3] = [("Group", "group"), ("ServiceAccount", "serviceAccount"), ("User", "user")];
    let kind = subject.at("kind");
    let supported = KINDS.map(|(kind, _)| kind);
    kind.always_one_of(&supported);
    if !supported.contains(&kind.text()) {
        return;
    }
    for (own, field) in KINDS {
        let named = subject.at(field);
        if *kind != own {
            named.forbidden_if(!named.is_null(), format_args!("needs the kind {own}"));
        } else if named.is_null() {
            named.required();
        } else {
            validate_name(own, &named);
        }
    }
}

/// Validates the name of a subject. A service account also has a namespace; its name `*` matches all of them.
fn validate_name(kind: &str, named: &Field<'_>) {
    let name = named.at("name");
    if kind != "ServiceAccount" {
        return name.required_if(name.is_empty());
    }
    if *name != "*" {
        name.required_name(NameRule::Subdomain);
    }
    named.at("namespace").required_name(NameRule::Label);
}

/// Returns `true` if a list contains `*`.
fn has_all(list: &Value) -> bool {
    list.as_array().into_iter().flatten().any(|item| item == "*")
}

/// Validates verbs: at least one, and either known verbs or only `*`.
fn validate_verbs(rule: &Field<'_>) {
    let verbs = rule.at("verbs");
    verbs.required_if(verbs.is_empty());
    validate_wildcard(&verbs);
    let are_known = verbs.items().all(|verb| VERBS.contains(&verb.text()));
    verbs.unsupported_if(!has_all(&verbs) && !are_known, &VERBS);
}

/// Reports a list that has `*` and other items: `*` already matches all others.
fn validate_wildcard(list: &Field<'_>) {
    list.invalid_if(has_all(list) && list.items().count() > 1, "'*' must be the only item");
}

/// Validates a rule about resources. With `clusterScope: true` it matches cluster-scoped requests only, unless it has
/// namespaces.
fn validate_resource_rule(rule: &Field<'_>) {
    validate_verbs(rule);
    rule.check_children(&["apiGroups", "resources", "namespaces"], validate_wildcard);
    rule.require_children(&["apiGroups", "resources"]);
    let namespaces = rule.at("namespaces");
    namespaces.required_if(namespaces.is_empty() && rule["clusterScope"] != true);
    if !has_all(&namespaces) {
        namespaces.items().for_each(|namespace| namespace.name(NameRule::Label));
    }
}

/// Validates a rule about paths outside of the API, such as `/healthz`.
fn validate_path_rule(rule: &Field<'_>) {
    validate_verbs(rule);
    let paths = rule.at("nonResourceURLs");
    paths.required_if(paths.is_empty());
    validate_wildcard(&paths);
    if has_all(&paths) {
        return;
    }
    for path in paths.items() {
        let detail = "must begin with '/', without spaces and '//', and with '*' only after the last '/'";
        path.invalid_if(!is_path(path.text()), detail);
    }
}

/// Returns `true` for an absolute path without spaces and empty segments, and with `*` only as the last segment.
fn is_path(path: &str) -> bool {
    let has_wildcard = path.strip_suffix("/*").unwrap_or(path).contains('*');
    path.starts_with('/') && !path.contains(' ') && !path.contains("//") && !has_wildcard
}

/// Validates a `PriorityLevelConfiguration`. The part that the type does not use is validated by the tags of the API
/// only, which also require the type.
pub(crate) fn validate_priority_level(object: &Value, errors: &mut Errors) {
    let spec = Field::new(&object["spec"], "spec", errors);
    let (kind, exempt, limited) = (spec.at("type"), spec.at("exempt"), spec.at("limited"));
    let is_exempt = object["metadata"]["name"] == EXEMPT;
    kind.invalid_if(is_exempt != (*kind == "Exempt"), "must be 'Exempt' if and only if `name` is 'exempt'");
    match kind.text() {
        "Exempt" => validate_seats(&exempt),
        "Limited" => validate_limited(&limited),
        "" => {}
        _ => kind.unsupported(&["Exempt", "Limited"]),
    }
}

/// Validates `nominalConcurrencyShares` and `lendablePercent`. The former is the share of the server's concurrency in
/// relation to other levels, the latter the part of unused seats that a level lends to others.
fn validate_seats(limits: &Field<'_>) {
    limits.at("nominalConcurrencyShares").not_negative();
    limits.at("lendablePercent").in_range(0, 100);
}

/// Validates the limits of a level. `borrowingLimitPercent` may exceed 100, and an absent one is unlimited.
fn validate_limited(limited: &Field<'_>) {
    validate_seats(limited);
    validate_limit_response(&limited.at("limitResponse"));
    limited.at("borrowingLimitPercent").not_negative();
}

/// Validates the response to requests beyond the limit: they wait in queues, or are rejected with 429.
fn validate_limit_response(response: &Field<'_>) {
    let (kind, queuing) = (response.at("type"), response.at("queuing"));
    match kind.text() {
        "" => {}
        "Queue" if !queuing.is_null() => validate_queuing(&queuing),
        _ => kind.one_of(&["Queue", "Reject"]),
    }
}

/// Validates the parameters of queuing (`ValidatePriorityLevelQueuingConfiguration`). A flow is dealt a hand of
/// `handSize` queues and uses the shortest of them. Dealing may need at most `ENTROPY_BITS_MAX` bits of the flow's
/// hash.
fn validate_queuing(queuing: &Field<'_>) {
    let number = |field: &str| queuing[field].as_i64().unwrap_or(0);
    let (queues, hand) = (number("queues"), number("handSize"));
    queuing.at("queueLengthLimit").at_least(1);
    queuing.at("queues").in_range(1, QUEUES_MAX);
    let is_complex = queues > 0 && hand > 0 && entropy_bits(queues, hand) > ENTROPY_BITS_MAX;
    let detail = format_args!(
        "must be from 1 to `queues`, and shuffle sharding must need at most {ENTROPY_BITS_MAX} hash bits: lower `handSize` or `queues`"
    );
    queuing.at("handSize").invalid_if(hand <= 0 || hand > queues || is_complex, detail);
}

/// Maximum number of bits of the hash that dealing a hand may use (`MaxHashBits` of
/// `pkg/util/shufflesharding`).
const ENTROPY_BITS_MAX: i64 = 60;

/// Returns the number of bits that dealing `hand` of `queues` uses, rounded up.
#[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, reason = "the real server counts in floats")]
fn entropy_bits(queues: i64, hand: i64) -> i64 {
    ((queues as f64).log2() * hand as f64).ceil() as i64
}

/// Validates the conditions of a `FlowSchema` or `PriorityLevelConfiguration`.
pub(crate) fn status(object: &Value, errors: &mut Errors) {
    let conditions = Field::new(&object["status"]["conditions"], "status.conditions", errors);
    conditions.unique_at("type");
    conditions.items().for_each(|condition| condition.require_children(&["type"]));
}
