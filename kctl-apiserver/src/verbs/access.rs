//! Whether a user may do what a call asks for: RBAC, as the authorizer of the real server evaluates it.

use serde_json::{Value, json};

use crate::{
    request::{Call, User, Verb},
    selector,
    status::{GroupResource, Refusal},
    store::State,
};

/// What is asked for, in the words of a rule.
pub(crate) struct Attributes<'a> {
    pub(crate) verb: &'a str,
    pub(crate) group: &'a str,
    pub(crate) resource: &'a str,
    pub(crate) subresource: &'a str,
    pub(crate) namespace: &'a str,
    pub(crate) name: &'a str,
}

pub(super) fn authorize(state: &State, call: &Call) -> Result<(), Refusal> {
    authorize_to(call.verb.name(), state, call)
}

/// Whoever applies or updates an object that is not there creates it (upstream, `endpoints/handlers/patch.go` and `update.go`).
pub(super) fn authorize_creation(state: &State, call: &Call) -> Result<(), Refusal> {
    authorize_to("create", state, call)
}

fn authorize_to(verb: &str, state: &State, call: &Call) -> Result<(), Refusal> {
    // A list or a watch of one object by its name may be allowed by a rule about that name (upstream,
    // `endpoints/request/requestinfo.go`).
    let selected = match call.verb {
        Verb::List | Verb::Watch | Verb::DeleteCollection => selector::name_of(call.params.text("fieldSelector")),
        _ => None,
    };
    let attributes = Attributes {
        verb,
        group: &call.resource.of.group,
        resource: &call.resource.of.resource,
        subresource: &call.subresource,
        namespace: &call.namespace,
        name: selected.as_deref().unwrap_or(&call.name),
    };
    if allowed(state, &call.user, &attributes) {
        return Ok(());
    }
    let Attributes { verb, group, resource, subresource, namespace, name } = attributes;
    let whole = if subresource.is_empty() { resource.to_owned() } else { format!("{resource}/{subresource}") };
    let scope = if namespace.is_empty() {
        "at the cluster scope".to_owned()
    } else {
        format!("in the namespace {namespace:?}")
    };
    let why = format!("User {:?} cannot {verb} resource {whole:?} in API group {group:?} {scope}", call.user.name);
    Err(Refusal::forbidden(&GroupResource::new(group, resource), name, &why))
}

/// Reviews that every user may ask for: the role `system:basic-user`.
const OWN_REVIEWS: [&str; 3] = ["selfsubjectaccessreviews", "selfsubjectreviews", "selfsubjectrulesreviews"];
/// Paths that every user may read: the roles `system:discovery` and `system:public-info-viewer`.
const OPEN_PATHS: [&str; 11] = [
    "/api",
    "/api/*",
    "/apis",
    "/apis/*",
    "/healthz",
    "/livez",
    "/openapi",
    "/openapi/*",
    "/readyz",
    "/version",
    "/version/",
];

/// Whether a user may do everything.
pub(crate) fn is_admin(user: &User) -> bool {
    user.groups.iter().any(|group| group == "system:masters")
}

/// Whether the roles that are bound to a user allow it.
pub(crate) fn allowed(state: &State, user: &User, asked: &Attributes<'_>) -> bool {
    let own_review = asked.verb == "create" && OWN_REVIEWS.contains(&asked.resource);
    is_admin(user) || own_review || granted(state, user, asked).is_some()
}

/// The binding that allows it, in the words of the real server.
pub(crate) fn granted(state: &State, user: &User, asked: &Attributes<'_>) -> Option<String> {
    roles(state, user, asked.namespace).find(|grant| allows(&grant.rule, asked)).map(|grant| grant.text)
}

/// Whether a user may use a path that is not about a resource.
pub(crate) fn allows_path(state: &State, user: &User, verb: &str, path: &str) -> bool {
    let open = verb == "get" && OPEN_PATHS.iter().any(|known| covers(known, path));
    is_admin(user)
        || open
        || roles(state, user, "").any(|Grant { rule, .. }| {
            let has = |field: &str, fits: &dyn Fn(&str) -> bool| {
                rule[field].as_array().into_iter().flatten().filter_map(Value::as_str).any(fits)
            };
            has("verbs", &|known| known == "*" || known == verb) && has("nonResourceURLs", &|known| covers(known, path))
        })
}

fn covers(known: &str, path: &str) -> bool {
    known == path || known.strip_suffix('*').is_some_and(|start| path.starts_with(start))
}

/// What a user may do in a namespace: rules about resources, and about paths.
pub(crate) fn rules_of(state: &State, user: &User, namespace: &str) -> (Vec<Value>, Vec<Value>) {
    let mut rules: Vec<Value> = roles(state, user, namespace).map(|grant| grant.rule).collect();
    if is_admin(user) {
        rules.push(json!({ "verbs": ["*"], "apiGroups": ["*"], "resources": ["*"] }));
        rules.push(json!({ "verbs": ["*"], "nonResourceURLs": ["*"] }));
    }
    rules.push(json!({ "verbs": ["create"], "apiGroups": ["authorization.k8s.io"],
        "resources": ["selfsubjectaccessreviews", "selfsubjectrulesreviews"] }));
    rules.push(
        json!({ "verbs": ["create"], "apiGroups": ["authentication.k8s.io"], "resources": ["selfsubjectreviews"] }),
    );
    rules.push(json!({ "verbs": ["get"], "nonResourceURLs": OPEN_PATHS }));
    rules.into_iter().partition(|rule| rule["nonResourceURLs"].is_null())
}

/// A rule that is a user's, and why.
struct Grant {
    rule: Value,
    text: String,
}

/// The rules of all roles that are bound to a user in a namespace; without one, in the cluster.
fn roles(state: &State, user: &User, namespace: &str) -> impl Iterator<Item = Grant> {
    let of = |resource: &str| GroupResource::new("rbac.authorization.k8s.io", resource);
    let (everywhere, here) = (of("clusterrolebindings"), of("rolebindings"));
    let cluster = state.objects(&everywhere, None);
    // No binding is in the namespace without a name.
    let local = state.objects(&here, Some(namespace));
    let mut grants = Vec::new();
    for binding in cluster.chain(local) {
        let Some(subject) = bound(binding, user) else { continue };
        let (reference, namespace) = (&binding["roleRef"], binding["metadata"]["namespace"].as_str());
        let name = reference["name"].as_str().unwrap_or_default().to_owned();
        let role = match (reference["kind"].as_str(), namespace) {
            (Some("ClusterRole"), _) => state.get(&of("clusterroles"), &(String::new(), name)),
            (Some("Role"), Some(namespace)) => state.get(&of("roles"), &(namespace.into(), name)),
            _ => None,
        };
        let own = binding["metadata"]["name"].as_str().unwrap_or_default();
        let (kind, own) = match namespace {
            Some(namespace) => ("RoleBinding", format!("{own}/{namespace}")),
            None => ("ClusterRoleBinding", own.to_owned()),
        };
        let (of, role_name) = (reference["kind"].as_str().unwrap_or_default(), &reference["name"]);
        let text = format!("RBAC: allowed by {kind} {own:?} of {of} {role_name} to {subject}");
        let rules = role.iter().flat_map(|role| role["rules"].as_array().into_iter().flatten().cloned());
        grants.extend(rules.map(|rule| Grant { rule, text: text.clone() }));
    }
    grants.into_iter()
}

/// The subject of a binding that is the user, as text.
fn bound(binding: &Value, user: &User) -> Option<String> {
    binding["subjects"].as_array().into_iter().flatten().find_map(|subject| {
        let name = subject["name"].as_str().unwrap_or_default();
        match subject["kind"].as_str().unwrap_or_default() {
            "User" => (name == user.name).then(|| format!("User {name:?}")),
            "Group" => user.groups.iter().any(|group| group == name).then(|| format!("Group {name:?}")),
            "ServiceAccount" => {
                let namespace = subject["namespace"].as_str().unwrap_or_default();
                let is_it = user.name == format!("system:serviceaccount:{namespace}:{name}");
                is_it.then(|| format!("ServiceAccount \"{name}/{namespace}\""))
            }
            _ => None,
        }
    })
}

fn allows(rule: &Value, asked: &Attributes<'_>) -> bool {
    let has = |field: &str, wanted: &str| {
        rule[field].as_array().into_iter().flatten().any(|known| known == "*" || known == wanted)
    };
    let whole = format!("{}/{}", asked.resource, asked.subresource);
    let resource = if asked.subresource.is_empty() { asked.resource } else { &whole };
    let any_with_subresource = format!("*/{}", asked.subresource);
    let names = rule["resourceNames"].as_array();
    has("verbs", asked.verb)
        && has("apiGroups", asked.group)
        && (has("resources", resource) || (!asked.subresource.is_empty() && has("resources", &any_with_subresource)))
        && names.is_none_or(|names| names.is_empty() || names.iter().any(|name| name == asked.name))
}
