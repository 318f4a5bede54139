//! Validation of `FlowSchema` and `PriorityLevelConfiguration` objects.
//!
//! Upstream: `pkg/apis/flowcontrol/validation/validation.go`.

use serde_json::Value;

use crate::{
    field_errors::{Errors, text},
    names::NameRule,
    validation::entries,
};

/// Highest `matchingPrecedence`. The lowest, 1, belongs to the schema `exempt`.
const PRECEDENCE_MAX: i64 = 10_000;
/// Name of the schema and of the level that are exempt from all limits. kube-apiserver creates
/// both.
const EXEMPT: &str = "exempt";
/// Verbs of requests, sorted as the error lists them. `*` stands for all.
const VERBS: [&str; 9] = ["create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch"];
/// Maximum number of queues of a level (`maxQueues`): 10 million.
const QUEUES_MAX: i64 = 10_000_000;

/// Validates a `FlowSchema`.
///
/// | field | rule |
/// |---|---|
/// | `matchingPrecedence` | 1 to 10,000; 1 only for the schema `exempt` |
/// | `distinguisherMethod.type` | `ByUser` or `ByNamespace`, if the method is set |
/// | `priorityLevelConfiguration.name` | required; the level need not exist |
/// | `rules[]` | subjects, and resources or paths |
pub(crate) fn schema(object: &Value, errors: &mut Errors) {
    let spec = &object["spec"];
    let (precedence, path) = (&spec["matchingPrecedence"], "spec.matchingPrecedence");
    let number = precedence.as_i64().unwrap_or(0);
    if number <= 0 {
        errors.invalid(path, precedence, "must be a positive value");
    }
    if number > PRECEDENCE_MAX {
        errors.invalid(path, precedence, &format!("must not be greater than {PRECEDENCE_MAX}"));
    }
    if number == 1 && object["metadata"]["name"] != EXEMPT {
        errors.invalid(path, precedence, "only the schema named 'exempt' may have matchingPrecedence 1");
    }
    let method = &spec["distinguisherMethod"];
    if !method.is_null() {
        errors.always_one_of("spec.distinguisherMethod.type", &method["type"], &["ByNamespace", "ByUser"]);
    }
    let (level, path) = (&spec["priorityLevelConfiguration"]["name"], "spec.priorityLevelConfiguration.name");
    if text(level).is_empty() {
        errors.required(path, "must reference a priority level");
    } else {
        errors.name(path, level, NameRule::Subdomain);
    }
    for (index, rule) in entries(&spec["rules"]) {
        rules(rule, &format!("spec.rules[{index}]"), errors);
    }
}

/// Validates one rule. It matches a request that has one of the subjects and fits one of the
/// resource or path rules.
fn rules(rule: &Value, path: &str, errors: &mut Errors) {
    if entries(&rule["subjects"]).next().is_none() {
        errors.required(&format!("{path}.subjects"), "subjects must contain at least one value");
    }
    for (index, subject) in entries(&rule["subjects"]) {
        of_subject(subject, &format!("{path}.subjects[{index}]"), errors);
    }
    if ["resourceRules", "nonResourceRules"].iter().all(|list| entries(&rule[*list]).next().is_none()) {
        errors.required(path, "at least one of resourceRules and nonResourceRules has to be non-empty");
    }
    for (index, rule) in entries(&rule["resourceRules"]) {
        of_resources(rule, &format!("{path}.resourceRules[{index}]"), errors);
    }
    for (index, rule) in entries(&rule["nonResourceRules"]) {
        of_paths(rule, &format!("{path}.nonResourceRules[{index}]"), errors);
    }
}

/// Validates a subject, which has the field of its kind (`FieldValueRequired`) and no other
/// (`FieldValueForbidden`).
///
/// | kind | field |
/// |---|---|
/// | `User` | `user.name` |
/// | `Group` | `group.name` |
/// | `ServiceAccount` | `serviceAccount.namespace` and `serviceAccount.name` |
fn of_subject(subject: &Value, path: &str, errors: &mut Errors) {
    /// Kinds of subjects, each with its field.
    const KINDS: [(&str, &str); 3] = [("ServiceAccount", "serviceAccount"), ("User", "user"), ("Group", "group")];
    let kind = text(&subject["kind"]);
    let Some((_, own)) = KINDS.iter().find(|(supported, _)| *supported == kind) else {
        return errors.unsupported(&format!("{path}.kind"), &kind.into(), &["Group", "ServiceAccount", "User"]);
    };
    let (named, own_path) = (&subject[*own], format!("{path}.{own}"));
    if named.is_null() {
        errors.required(&own_path, &format!("{own} is required when subject kind is '{kind}'"));
    } else {
        names_of(kind, named, &own_path, errors);
    }
    for (other, field) in KINDS.iter().filter(|(other, field)| *other != kind && !subject[*field].is_null()) {
        errors
            .forbidden(&format!("{path}.{field}"), &format!("{field} is forbidden when subject kind is not '{other}'"));
    }
}

/// Validates the name of a subject. A service account also has a namespace; its name `*` stands for
/// all of them.
fn names_of(kind: &str, named: &Value, path: &str, errors: &mut Errors) {
    let name_path = format!("{path}.name");
    if text(&named["name"]).is_empty() {
        errors.required(&name_path, "");
    } else if kind == "ServiceAccount" && named["name"] != "*" {
        errors.name(&name_path, &named["name"], NameRule::Subdomain);
    }
    if kind == "ServiceAccount" {
        let path = format!("{path}.namespace");
        if text(&named["namespace"]).is_empty() {
            errors.required(&path, "must specify namespace for service account");
        } else {
            errors.name(&path, &named["namespace"], NameRule::Label);
        }
    }
}

/// Returns `true` if a list contains `*`.
fn has_all(list: &Value) -> bool {
    entries(list).any(|(_, item)| item == "*")
}

/// Validates verbs: at least one, and either known verbs or only `*`.
fn of_verbs(verbs: &Value, path: &str, errors: &mut Errors) {
    let path = format!("{path}.verbs");
    if entries(verbs).next().is_none() {
        errors.required(&path, "verbs must contain at least one value");
    } else if has_all(verbs) {
        stands_alone(verbs, &path, errors);
    } else if !entries(verbs).all(|(_, verb)| VERBS.contains(&text(verb))) {
        errors.unsupported(&path, verbs, &VERBS);
    }
}

/// Reports a list that has `*` and other items: `*` already stands for all others.
fn stands_alone(list: &Value, path: &str, errors: &mut Errors) {
    if has_all(list) && entries(list).count() > 1 {
        errors.invalid(path, list, "'*' must be the only item");
    }
}

/// Validates a rule about resources: verbs, API groups, resources and namespaces.
///
/// A rule with `clusterScope: true` needs no namespaces; it then matches cluster-scoped requests
/// only.
fn of_resources(rule: &Value, path: &str, errors: &mut Errors) {
    of_verbs(&rule["verbs"], path, errors);
    for field in ["apiGroups", "resources"] {
        let path = format!("{path}.{field}");
        if entries(&rule[field]).next().is_none() {
            errors.required(&path, "a resource rule needs at least one");
        }
        stands_alone(&rule[field], &path, errors);
    }
    let (namespaces, path) = (&rule["namespaces"], format!("{path}.namespaces"));
    if entries(namespaces).next().is_none() && rule["clusterScope"] != true {
        let detail = "resource rules that are not cluster scoped must supply at least one namespace";
        errors.required(&path, detail);
    } else if has_all(namespaces) {
        stands_alone(namespaces, &path, errors);
    } else {
        for (index, namespace) in entries(namespaces) {
            if let Some(message) = NameRule::Label.check(text(namespace)) {
                let detail = format!("each member of this list must be '*' or a DNS-1123 label; {message}");
                errors.invalid(&format!("{path}[{index}]"), namespace, &detail);
            }
        }
    }
}

/// Validates a rule about paths outside of the API, such as `/healthz`.
fn of_paths(rule: &Value, field_path: &str, errors: &mut Errors) {
    of_verbs(&rule["verbs"], field_path, errors);
    let (paths, field_path) = (&rule["nonResourceURLs"], format!("{field_path}.nonResourceURLs"));
    if entries(paths).next().is_none() {
        errors.required(&field_path, "nonResourceURLs must contain at least one value");
    } else if has_all(paths) {
        stands_alone(paths, &field_path, errors);
    } else {
        for (index, path) in entries(paths) {
            of_path(path, &format!("{field_path}[{index}]"), errors);
        }
    }
}

/// Validates one path: absolute, without spaces and empty segments, and with `*` only as the last
/// segment.
fn of_path(path: &Value, field_path: &str, errors: &mut Errors) {
    let is = text(path);
    let detail = if is.is_empty() {
        "must not be empty"
    } else if is == "/" {
        return;
    } else if !is.starts_with('/') {
        "must start with slash"
    } else if is.contains(' ') {
        "must not contain white-space"
    } else if is.contains("//") {
        "must not contain double slash"
    } else if is.strip_suffix("/*").unwrap_or(is).contains('*') {
        "wildcard can only do suffix matching"
    } else {
        return;
    };
    errors.invalid(field_path, path, detail);
}

/// Validates a `PriorityLevelConfiguration`.
///
/// The type is `Exempt` if and only if the name is `exempt`. The part that the type does not use is validated by the
/// tags of the API only.
///
/// | type | validated |
/// |---|---|
/// | `Exempt` | `exempt.nominalConcurrencyShares`, `exempt.lendablePercent` |
/// | `Limited` | `limited` with its response to requests beyond the limit |
/// | empty | nothing: the schema requires the type |
pub(crate) fn level(object: &Value, errors: &mut Errors) {
    let spec = &object["spec"];
    let (kind, name) = (text(&spec["type"]), text(&object["metadata"]["name"]));
    if (name == EXEMPT) != (kind == "Exempt") {
        errors.invalid("spec.type", &kind.into(), "must be 'Exempt' if and only if `name` is 'exempt'");
    }
    let (exempt, limited) = (&spec["exempt"], &spec["limited"]);
    match kind {
        "Exempt" => {
            shares(exempt, "spec.exempt", errors);
            lent(exempt, "spec.exempt", errors);
        }
        "Limited" => {
            if !limited.is_null() {
                of_limits(limited, errors);
            }
        }
        "" => {}
        _ => errors.one_of("spec.type", &spec["type"], &["Exempt", "Limited"]),
    }
}

/// Validates `nominalConcurrencyShares`, the share of the server's concurrency in relation to other
/// levels: not negative.
fn shares(limits: &Value, path: &str, errors: &mut Errors) {
    let seats = &limits["nominalConcurrencyShares"];
    if seats.as_i64().is_some_and(|seats| seats < 0) {
        errors.invalid(&format!("{path}.nominalConcurrencyShares"), seats, "must be a non-negative integer");
    }
}

/// Validates `lendablePercent`, the part of its seats that a level lends to others while it does
/// not use them: 0 to 100.
fn lent(limits: &Value, path: &str, errors: &mut Errors) {
    errors.in_range(&format!("{path}.lendablePercent"), &limits["lendablePercent"], 0, 100);
}

/// Validates the limits of a level. `borrowingLimitPercent` may exceed 100, and an absent one is
/// unlimited.
fn of_limits(limited: &Value, errors: &mut Errors) {
    shares(limited, "spec.limited", errors);
    response(&limited["limitResponse"], errors);
    lent(limited, "spec.limited", errors);
    let borrowed = &limited["borrowingLimitPercent"];
    if borrowed.as_i64().is_some_and(|percent| percent < 0) {
        let detail = "if specified, must be a non-negative integer";
        errors.invalid("spec.limited.borrowingLimitPercent", borrowed, detail);
    }
}

/// Validates the response to requests beyond the limit.
///
/// With `Queue`, kube-apiserver lets requests wait in queues, whose parameters are validated. With
/// `Reject`, it rejects them with 429 at once.
fn response(response: &Value, errors: &mut Errors) {
    let path = "spec.limited.limitResponse";
    let queuing = &response["queuing"];
    match text(&response["type"]) {
        "Queue" if !queuing.is_null() => of_queues(queuing, &format!("{path}.queuing"), errors),
        "" => {}
        _ => errors.one_of(&format!("{path}.type"), &response["type"], &["Queue", "Reject"]),
    }
}

/// Validates the parameters of queuing (`ValidatePriorityLevelQueuingConfiguration`).
///
/// A flow is dealt a hand of `handSize` queues and uses the shortest of them. `handSize` is at most
/// `queues`, and the two together may need at most `ENTROPY_BITS_MAX` bits of the flow's hash.
fn of_queues(queuing: &Value, path: &str, errors: &mut Errors) {
    let number = |field: &str| queuing[field].as_i64().unwrap_or(0);
    let (queues, hand) = (number("queues"), number("handSize"));
    for field in ["queueLengthLimit", "queues"].iter().filter(|field| number(field) <= 0) {
        errors.invalid(&format!("{path}.{field}"), &queuing[*field], "must be positive");
    }
    if queues > QUEUES_MAX {
        let detail = format!("must not be greater than {QUEUES_MAX}");
        errors.invalid(&format!("{path}.queues"), &queuing["queues"], &detail);
    }
    if hand <= 0 {
        errors.invalid(&format!("{path}.handSize"), &queuing["handSize"], "must be positive");
    }
    if hand > queues {
        let detail = format!("should not be greater than queues ({queues})");
        errors.invalid(&format!("{path}.handSize"), &queuing["handSize"], &detail);
    }
    let bits = entropy_bits(queues, hand);
    if queues > 0 && hand > 0 && bits > ENTROPY_BITS_MAX {
        let detail = format!(
            "required entropy bits of deckSize {queues} and handSize {hand} should not be greater than {ENTROPY_BITS_MAX}"
        );
        errors.invalid(&format!("{path}.handSize"), &queuing["handSize"], &detail);
    }
}

/// Maximum number of bits of the hash that dealing a hand may use (`MaxHashBits` of
/// `pkg/util/shufflesharding`).
const ENTROPY_BITS_MAX: i64 = 60;

/// Returns the number of bits that dealing `hand` of `queues` uses, rounded up.
#[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, reason = "the real server counts in floats")]
fn entropy_bits(queues: i64, hand: i64) -> i64 {
    ((queues as f64).log2() * hand as f64).ceil() as i64
}

/// Validates the conditions of a `FlowSchema` or `PriorityLevelConfiguration`: types are required
/// and unique.
pub(crate) fn status(object: &Value, errors: &mut Errors) {
    let mut seen: Vec<&str> = Vec::new();
    for (index, condition) in entries(&object["status"]["conditions"]) {
        let (path, kind) = (format!("status.conditions[{index}].type"), text(&condition["type"]));
        if seen.contains(&kind) {
            errors.duplicate(&path);
        }
        seen.push(kind);
        if kind.is_empty() {
            errors.required(&path, "");
        }
    }
}
