//! Whether a user may do what a call asks for: RBAC, as the authorizer of the real server evaluates it.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::{
    request::{Call, User, Verb},
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
    // A list of one name is about that object.
    let selected = call.params.text("fieldSelector").split(',').find_map(|term| term.strip_prefix("metadata.name="));
    let selected = selected.unwrap_or_default().trim_start_matches('=');
    let many = matches!(call.verb, Verb::List | Verb::Watch | Verb::DeleteCollection);
    let attributes = Attributes {
        verb: call.verb.name(),
        group: &call.resource.of.group,
        resource: &call.resource.of.resource,
        subresource: &call.subresource,
        namespace: &call.namespace,
        name: if many { selected } else { &call.name },
    };
    if asks_about_itself(&attributes) || allowed(state, &call.user, &attributes) {
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

/// What the role `system:basic-user` allows to everybody.
fn asks_about_itself(asked: &Attributes<'_>) -> bool {
    let own = ["selfsubjectaccessreviews", "selfsubjectrulesreviews", "selfsubjectreviews"];
    asked.verb == "create" && own.contains(&asked.resource)
}

/// Whether the roles that are bound to a user allow it.
pub(crate) fn allowed(state: &State, user: &User, asked: &Attributes<'_>) -> bool {
    is_master(user) || roles(state, user, asked.namespace).any(|role| rules_of(&role).any(|rule| allows(rule, asked)))
}

/// The rules of a user in a namespace, with those for all namespaces.
pub(super) fn rules(state: &State, user: &User, namespace: &str) -> Vec<Value> {
    if is_master(user) {
        return vec![
            json!({ "verbs": ["*"], "apiGroups": ["*"], "resources": ["*"] }),
            json!({ "verbs": ["*"], "nonResourceURLs": ["*"] }),
        ];
    }
    roles(state, user, namespace).flat_map(|role| rules_of(&role).cloned().collect::<Vec<_>>()).collect()
}

fn is_master(user: &User) -> bool {
    user.groups.iter().any(|group| group == "system:masters")
}

fn rules_of(role: &Value) -> impl Iterator<Item = &Value> {
    role["rules"].as_array().into_iter().flatten()
}

/// The roles that are bound to a user in a namespace and in all of them.
fn roles(state: &State, user: &User, namespace: &str) -> impl Iterator<Item = Arc<Value>> {
    let of = |resource: &str| GroupResource::new("rbac.authorization.k8s.io", resource);
    let (everywhere, here) = (of("clusterrolebindings"), of("rolebindings"));
    let cluster = state.objects(&everywhere, None);
    // No binding is in the namespace without a name.
    let local = state.objects(&here, Some(namespace));
    let bindings: Vec<_> = cluster.chain(local).filter(|binding| binds(binding, user)).collect();
    bindings.into_iter().filter_map(move |binding| {
        let (reference, namespace) = (&binding["roleRef"], binding["metadata"]["namespace"].as_str());
        let name = reference["name"].as_str().unwrap_or_default().to_owned();
        match (reference["kind"].as_str(), namespace) {
            (Some("ClusterRole"), _) => state.get(&of("clusterroles"), &(String::new(), name)),
            (Some("Role"), Some(namespace)) => state.get(&of("roles"), &(namespace.into(), name)),
            _ => None,
        }
    })
}

fn binds(binding: &Value, user: &User) -> bool {
    binding["subjects"].as_array().into_iter().flatten().any(|subject| {
        let name = subject["name"].as_str().unwrap_or_default();
        match subject["kind"].as_str().unwrap_or_default() {
            "User" => name == user.name,
            "Group" => user.groups.iter().any(|group| group == name),
            "ServiceAccount" => {
                let namespace = subject["namespace"].as_str().unwrap_or_default();
                user.name == format!("system:serviceaccount:{namespace}:{name}")
            }
            _ => false,
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
