//! Which rules are whose: the roles that are bound to a user, which are looked up once until a role or a binding changes.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use parking_lot::Mutex;
use serde_json::Value;

use crate::{
    request::User,
    status::GroupResource,
    store::{Key, State},
};

/// The group of roles and bindings.
pub(crate) const RBAC: &str = "rbac.authorization.k8s.io";

/// Users and namespaces whose rules are kept; beyond it all are looked up anew.
const GRANTS_LEN_MAX: usize = 1_000;

/// A rule that is a user's, and why.
pub(crate) struct Grant {
    pub(super) rule: Value,
    text: Arc<str>,
}

impl Grant {
    /// The binding, in the words of the real server.
    pub(super) fn text(&self) -> String {
        self.text.as_ref().to_owned()
    }
}

/// What is a user's in a namespace.
pub(crate) struct Granted {
    pub(super) grants: Vec<Grant>,
    /// The roles that are bound to the user and are not there, in the words of the real server.
    missing: Vec<String>,
}

impl Granted {
    /// What the authorizer says beside a no.
    pub(super) fn reason(&self) -> Option<String> {
        match self.missing.as_slice() {
            [] => None,
            [one] => Some(format!("RBAC: {one}")),
            all => Some(format!("RBAC: [{}]", all.join(", "))),
        }
    }
}

/// Where roles and bindings are looked up: the state, or what was in it once.
pub(crate) trait Known {
    /// The rules of all roles that are bound to a user in a namespace; without one, in the cluster.
    fn grants(&self, user: &User, namespace: &str) -> Arc<Granted>;
}

/// What was looked up by user and namespace.
#[derive(Default)]
pub(crate) struct Grants(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    by_user: HashMap<User, HashMap<String, Arc<Granted>>>,
    len: usize,
}

impl Grants {
    /// A role or a binding has changed.
    pub(crate) fn forget(&mut self) {
        *self.0.get_mut() = Kept::default();
    }

    fn of(&self, user: &User, namespace: &str, look_up: impl FnOnce() -> Arc<Granted>) -> Arc<Granted> {
        let mut kept = self.0.lock();
        if let Some(known) = kept.by_user.get(user).and_then(|of_user| of_user.get(namespace)) {
            return known.clone();
        }
        if kept.len >= GRANTS_LEN_MAX {
            *kept = Kept::default();
        }
        let grants = look_up();
        kept.len += 1;
        kept.by_user.entry(user.clone()).or_default().insert(namespace.to_owned(), grants.clone());
        grants
    }
}

impl Known for State {
    fn grants(&self, user: &User, namespace: &str) -> Arc<Granted> {
        self.grants.of(user, namespace, || {
            let all = |resource: &str, namespace: Option<&str>| -> Vec<Arc<Value>> {
                self.objects(&GroupResource::new(RBAC, resource), namespace).collect()
            };
            let mut bindings = all("clusterrolebindings", None);
            // No binding is in the namespace without a name.
            bindings.extend(all("rolebindings", Some(namespace)));
            granted(&bindings, user, |resource, key| self.get(&GroupResource::new(RBAC, resource), key))
        })
    }
}

/// All roles and bindings as they were, for questions that are asked without the state.
pub(crate) struct Snapshot(HashMap<&'static str, BTreeMap<Key, Arc<Value>>>);

impl Snapshot {
    pub(crate) fn of(state: &State) -> Self {
        let tables = ["clusterroles", "clusterrolebindings", "roles", "rolebindings"].map(|resource| {
            let of = GroupResource::new(RBAC, resource);
            let objects = state.objects(&of, None);
            let text = |object: &Value, field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
            let keyed = objects.map(|object| ((text(&object, "namespace"), text(&object, "name")), object));
            (resource, keyed.collect())
        });
        Self(tables.into())
    }
}

impl Known for Snapshot {
    fn grants(&self, user: &User, namespace: &str) -> Arc<Granted> {
        let all = |resource| self.0.get(resource).into_iter().flatten();
        let own = all("rolebindings").filter(|(key, _)| key.0 == namespace);
        let bindings: Vec<Arc<Value>> = all("clusterrolebindings").chain(own).map(|(_, one)| one.clone()).collect();
        granted(&bindings, user, |resource, key| self.0.get(resource)?.get(key).cloned())
    }
}

/// The rules of the roles of those bindings that are about a user.
fn granted(
    bindings: &[Arc<Value>],
    user: &User,
    role: impl Fn(&'static str, &Key) -> Option<Arc<Value>>,
) -> Arc<Granted> {
    let (mut grants, mut missing) = (Vec::new(), Vec::<String>::new());
    for binding in bindings {
        let Some(subject) = bound(binding, user) else { continue };
        let (reference, namespace) = (&binding["roleRef"], binding["metadata"]["namespace"].as_str());
        let name = reference["name"].as_str().unwrap_or_default().to_owned();
        let role = match (reference["kind"].as_str(), namespace) {
            (Some("ClusterRole"), _) => role("clusterroles", &(String::new(), name)),
            (Some("Role"), Some(namespace)) => role("roles", &(namespace.into(), name)),
            _ => None,
        };
        let own = binding["metadata"]["name"].as_str().unwrap_or_default();
        let (kind, own) = match namespace {
            Some(namespace) => ("RoleBinding", format!("{own}/{namespace}")),
            None => ("ClusterRoleBinding", own.to_owned()),
        };
        let (of, role_name) = (reference["kind"].as_str().unwrap_or_default(), &reference["name"]);
        let text: Arc<str> = format!("RBAC: allowed by {kind} {own:?} of {of} {role_name} to {subject}").into();
        if role.is_none() {
            let resource = of.to_lowercase();
            let why = format!("{resource}.{RBAC} {role_name} not found");
            if !missing.contains(&why) {
                missing.push(why);
            }
        }
        let rules = role.iter().flat_map(|role| role["rules"].as_array().into_iter().flatten().cloned());
        grants.extend(rules.map(|rule| Grant { rule, text: text.clone() }));
    }
    Granted { grants, missing }.into()
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;
    use serde_json::json;

    fn state() -> State {
        let mut state = State::new(Clock::System, 0);
        put(&mut state, "roles", json!({ "rules": [{ "verbs": ["get"] }] }));
        let subjects = json!([{ "kind": "User", "name": "pat" }]);
        put(&mut state, "rolebindings", json!({ "subjects": subjects, "roleRef": { "kind": "Role", "name": "x" } }));
        state
    }

    fn put(state: &mut State, resource: &str, mut object: Value) {
        object["metadata"] = json!({ "name": "x", "namespace": "a" });
        state.put(&GroupResource::new(RBAC, resource), ("a".into(), "x".into()), object);
    }

    fn pat(n: usize) -> User {
        let name = if n == 0 { "pat".into() } else { format!("pat-{n}") };
        User { name, groups: Vec::new() }
    }

    fn verbs(state: &State) -> Vec<Value> {
        state.grants(&pat(0), "a").grants.iter().map(|grant| grant.rule["verbs"].clone()).collect()
    }

    #[test]
    fn what_was_looked_up_is_forgotten_when_a_role_or_a_binding_changes() {
        let mut state = state();
        assert_eq!(verbs(&state), [json!(["get"])]);
        assert!(Arc::ptr_eq(&state.grants(&pat(0), "a"), &state.grants(&pat(0), "a")));
        assert!(state.grants(&pat(0), "b").grants.is_empty() && state.grants(&pat(1), "a").grants.is_empty());
        put(&mut state, "roles", json!({ "rules": [{ "verbs": ["list"] }, { "verbs": ["get"] }] }));
        assert_eq!(verbs(&state), [json!(["list"]), json!(["get"])]);
        state.remove(&GroupResource::new(RBAC, "rolebindings"), &("a".into(), "x".into()));
        assert!(verbs(&state).is_empty());
    }

    #[test]
    fn a_fork_looks_up_its_own() {
        let state = state();
        assert_eq!(verbs(&state).len(), 1);
        let mut fork = state.fork(Clock::System, 1);
        fork.remove(&GroupResource::new(RBAC, "roles"), &("a".into(), "x".into()));
        assert_eq!((verbs(&state).len(), verbs(&fork).len()), (1, 0));
    }

    #[test]
    fn users_are_kept_up_to_a_bound() {
        let state = state();
        for n in 0..3 * GRANTS_LEN_MAX {
            state.grants(&pat(n), "a");
        }
        let len = state.grants.0.lock().by_user.len();
        assert!((1..=GRANTS_LEN_MAX).contains(&len), "{len}");
        assert_eq!(verbs(&state), [json!(["get"])]);
    }
}
