//! Finds the RBAC rules of a user, and caches them until a role or a binding changes.
//!
//! Upstream: `pkg/registry/rbac/validation/rule.go`.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use parking_lot::Mutex;
use serde_json::Value;

use crate::{
    key,
    kinds::{
        core::service_account,
        rbac::{cluster_role, cluster_role_binding, role, role_binding},
    },
    registry::Kind,
    request::User,
    store::{Key, Store},
};

/// The group of roles and bindings.
pub(crate) const RBAC: &str = "rbac.authorization.k8s.io";

/// Maximum number of pairs of user and namespace in the cache. Beyond it the cache is emptied. Emptying is simpler than
/// evicting, and the entries are cheap to find again.
const CACHE_LEN_MAX: usize = 1_000;

/// The rules of a user in a namespace.
pub(crate) struct UserRules {
    /// The rules as stored, in the order of the bindings; rules of `ClusterRoleBindings` come first.
    pub(super) rules: Vec<Value>,
    /// Errors of roles that are bound to the user but do not exist.
    missing: Vec<String>,
}

impl UserRules {
    /// Returns the roles that are bound and do not exist, as one error; `None` without such a role.
    pub(super) fn error(&self) -> Option<String> {
        (!self.missing.is_empty()).then(|| self.missing.join(", "))
    }
}

/// Finds the rules of users (`AuthorizationRuleResolver`). Two implementations: the store with a cache, and a snapshot
/// that outlives the lock.
pub(crate) trait RuleResolver {
    /// Returns the rules of all roles that are bound to a user in a namespace, and in the whole cluster. An empty
    /// namespace selects only the rules for the whole cluster.
    fn rules_for(&self, user: &User, namespace: &str) -> Arc<UserRules>;
}

/// The rules that were found, by user and namespace. A mutex, because the authorizer has a shared reference to the
/// state.
#[derive(Default)]
pub(crate) struct RuleCache(Mutex<Cached>);

/// The entries of a [`RuleCache`].
#[derive(Default)]
struct Cached {
    /// The revision of the last change of a role or binding that the cache has seen.
    revision: u64,
    /// The rules of each user, by namespace.
    by_user: HashMap<User, HashMap<String, Arc<UserRules>>>,
    /// The number of entries of all users. Invariant: at most [`CACHE_LEN_MAX`].
    len: usize,
}

impl RuleCache {
    /// Empties the cache. The cache empties itself when a role or binding changes, but not when the store is loaded.
    pub(crate) fn clear(&mut self) {
        *self.0.get_mut() = Cached::default();
    }

    /// Returns the cached rules of a user, or finds them. A change of any role or binding empties the cache first.
    /// `revision` is the revision of the last change in the group.
    fn get_or_find(
        &self,
        revision: u64,
        user: &User,
        namespace: &str,
        find: impl FnOnce() -> Arc<UserRules>,
    ) -> Arc<UserRules> {
        let mut cached = self.0.lock();
        if cached.revision != revision {
            *cached = Cached { revision, ..Cached::default() };
        }
        if let Some(rules) = cached.by_user.get(user).and_then(|by_namespace| by_namespace.get(namespace)) {
            return rules.clone();
        }
        if cached.len >= CACHE_LEN_MAX {
            *cached = Cached { revision, ..Cached::default() };
        }
        let rules = find();
        cached.len += 1;
        let before = cached.by_user.entry(user.clone()).or_default().insert(namespace.to_owned(), rules.clone());
        debug_assert!(before.is_none(), "`len` counts each user and namespace once");
        debug_assert!(cached.len <= CACHE_LEN_MAX, "the cache is emptied at the bound");
        rules
    }
}

/// Finds rules in the roles and bindings of a store.
#[derive(Clone, Copy)]
pub(crate) struct Rbac<'a> {
    /// The roles and bindings.
    pub(crate) store: &'a Store,
    /// The rule cache, which all requests share.
    pub(crate) cache: &'a RuleCache,
}

impl RuleResolver for Rbac<'_> {
    fn rules_for(&self, user: &User, namespace: &str) -> Arc<UserRules> {
        let Self { store, cache } = self;
        cache.get_or_find(store.last_change_in(RBAC), user, namespace, || {
            let all = |kind: &Kind, namespace: Option<&str>| -> Vec<Arc<Value>> {
                store.objects(&kind.group_resource(), namespace).collect()
            };
            let mut bindings = all(&cluster_role_binding::KIND, None);
            // There are no RoleBindings in the empty namespace.
            bindings.extend(all(&role_binding::KIND, Some(namespace)));
            bound_rules(&bindings, user, |kind, key| store.get(&kind.group_resource(), key))
        })
    }
}

/// A copy of all roles and bindings, for CEL expressions, which outlive the borrow of the store. Cheap: objects are
/// shared, and only the keys are copied.
pub(crate) struct Snapshot(HashMap<&'static str, BTreeMap<Key, Arc<Value>>>);

impl Snapshot {
    /// Copies the roles and bindings of a store.
    pub(crate) fn take(store: &Store) -> Self {
        let tables = [&cluster_role::KIND, &cluster_role_binding::KIND, &role::KIND, &role_binding::KIND].map(|kind| {
            let resource = kind.group_resource();
            let objects = store.objects(&resource, None);
            let keyed = objects.map(|object| (key::object_key(&object), object));
            (kind.resource, keyed.collect())
        });
        Self(tables.into())
    }
}

impl RuleResolver for Snapshot {
    fn rules_for(&self, user: &User, namespace: &str) -> Arc<UserRules> {
        let all = |kind: &Kind| self.0.get(kind.resource).into_iter().flatten();
        let own = all(&role_binding::KIND).filter(|(key, _)| key.0 == namespace);
        let bindings: Vec<Arc<Value>> =
            all(&cluster_role_binding::KIND).chain(own).map(|(_, binding)| binding.clone()).collect();
        bound_rules(&bindings, user, |kind, key| self.0.get(kind.resource)?.get(key).cloned())
    }
}

/// Returns the rules of the roles that these bindings bind to a user. Bindings to roles that do not exist add no rules.
fn bound_rules(
    bindings: &[Arc<Value>],
    user: &User,
    role_of: impl Fn(&'static Kind, &Key) -> Option<Arc<Value>>,
) -> Arc<UserRules> {
    let (mut rules, mut missing) = (Vec::new(), Vec::<String>::new());
    for binding in bindings.iter().filter(|binding| has_subject(binding, user)) {
        let (reference, namespace) = (&binding["roleRef"], binding["metadata"]["namespace"].as_str());
        let name = reference["name"].as_str().unwrap_or_default().to_owned();
        let role_kind = reference["kind"].as_str().unwrap_or_default();
        let error = format!("{}.{RBAC} {name:?} not found", role_kind.to_lowercase());
        let role = match namespace {
            _ if role_kind == cluster_role::KIND.kind => role_of(&cluster_role::KIND, &(String::new(), name)),
            Some(namespace) if role_kind == role::KIND.kind => role_of(&role::KIND, &(namespace.into(), name)),
            _ => None,
        };
        if role.is_none() && !missing.contains(&error) {
            missing.push(error);
        }
        rules.extend(role.iter().flat_map(|role| role["rules"].as_array().into_iter().flatten().cloned()));
    }
    UserRules { rules, missing }.into()
}

/// Returns `true` if a subject of a binding matches a user. Subjects are compared by name; the API group is ignored.
fn has_subject(binding: &Value, user: &User) -> bool {
    binding["subjects"].as_array().into_iter().flatten().any(|subject| {
        let name = subject["name"].as_str().unwrap_or_default();
        match subject["kind"].as_str().unwrap_or_default() {
            "User" => name == user.name,
            "Group" => user.groups.iter().any(|group| group == name),
            kind if kind == service_account::KIND.kind => {
                // A RoleBinding need not repeat its namespace: `appliesToUser` in pkg/registry/rbac/validation/rule.go.
                let named = subject["namespace"].as_str().filter(|named| !named.is_empty());
                let namespace = named.or(binding["metadata"]["namespace"].as_str()).unwrap_or_default();
                user.name == format!("system:serviceaccount:{namespace}:{name}")
            }
            _ => false,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;
    use crate::status::GroupResource;
    use serde_json::json;

    fn store() -> Store {
        let mut store = Store::new(crate::kinds::built_in(), Clock::System, 0);
        put(&mut store, "roles", json!({ "rules": [{ "verbs": ["get"] }] }));
        let subjects = json!([{ "kind": "User", "name": "pat" }]);
        put(&mut store, "rolebindings", json!({ "subjects": subjects, "roleRef": { "kind": "Role", "name": "x" } }));
        store
    }

    fn put(store: &mut Store, resource: &str, mut object: Value) {
        object["metadata"] = json!({ "name": "x", "namespace": "a" });
        store.put(&GroupResource::new(RBAC, resource), ("a".into(), "x".into()), object);
    }

    #[test]
    fn service_account_subject_defaults_to_binding_namespace() {
        let binding =
            |namespace: Value, subject: Value| json!({ "metadata": { "namespace": namespace }, "subjects": [subject] });
        let user = |name: &str| User { name: name.to_owned(), groups: Vec::new() };
        let (builder, unnamed) =
            (user("system:serviceaccount:a:builder"), json!({ "kind": "ServiceAccount", "name": "builder" }));
        assert!(has_subject(&binding("a".into(), unnamed.clone()), &builder));
        assert!(!has_subject(&binding("b".into(), unnamed.clone()), &builder));
        assert!(!has_subject(&binding(Value::Null, unnamed), &builder));
        let named = json!({ "kind": "ServiceAccount", "name": "builder", "namespace": "a" });
        assert!(has_subject(&binding("b".into(), named), &builder));
    }

    fn pat(n: usize) -> User {
        let name = if n == 0 { "pat".into() } else { format!("pat-{n}") };
        User { name, groups: Vec::new() }
    }

    fn verbs(rbac: Rbac<'_>) -> Vec<Value> {
        rbac.rules_for(&pat(0), "a").rules.iter().map(|rule| rule["verbs"].clone()).collect()
    }

    #[test]
    fn rule_cache_empties_when_roles_or_bindings_change() {
        let (mut store, cache) = (store(), RuleCache::default());
        let rbac = Rbac { store: &store, cache: &cache };
        assert_eq!(verbs(rbac), [json!(["get"])]);
        assert!(Arc::ptr_eq(&rbac.rules_for(&pat(0), "a"), &rbac.rules_for(&pat(0), "a")));
        assert!(rbac.rules_for(&pat(0), "b").rules.is_empty() && rbac.rules_for(&pat(1), "a").rules.is_empty());
        put(&mut store, "roles", json!({ "rules": [{ "verbs": ["list"] }, { "verbs": ["get"] }] }));
        assert_eq!(verbs(Rbac { store: &store, cache: &cache }), [json!(["list"]), json!(["get"])]);
        store.remove(&GroupResource::new(RBAC, "rolebindings"), &("a".into(), "x".into()));
        assert!(verbs(Rbac { store: &store, cache: &cache }).is_empty());
    }

    #[test]
    fn other_changes_leave_the_cache() {
        let (mut store, cache) = (store(), RuleCache::default());
        let before = Rbac { store: &store, cache: &cache }.rules_for(&pat(0), "a");
        store.put(&GroupResource::new("", "configmaps"), ("a".into(), "x".into()), json!({ "metadata": {} }));
        store.put(&GroupResource::new("storage.k8s.io", "csinodes"), Key::default(), json!({ "metadata": {} }));
        assert!(Arc::ptr_eq(&before, &Rbac { store: &store, cache: &cache }.rules_for(&pat(0), "a")));
    }

    #[test]
    fn users_are_kept_up_to_a_bound() {
        let (store, cache) = (store(), RuleCache::default());
        let rbac = Rbac { store: &store, cache: &cache };
        for n in 0..3 * CACHE_LEN_MAX {
            rbac.rules_for(&pat(n), "a");
        }
        let len = cache.0.lock().by_user.len();
        assert!((1..=CACHE_LEN_MAX).contains(&len), "{len}");
        assert_eq!(verbs(rbac), [json!(["get"])]);
    }
}
