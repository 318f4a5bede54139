//! Impersonation: reads the `Impersonate-*` headers of a request, and checks that the caller may act as that user.
//!
//! Upstream: `k8s.io/apiserver/pkg/endpoints/filters/impersonation`. Constrained verbs are tried first, which allow
//! some users for some requests (`impersonate:user-info` with `impersonate-on:user-info:get`), and then
//! `impersonate`, which allows all.

use std::collections::BTreeMap;

use http::{HeaderMap, request::Parts};

use crate::{
    authorizer::{self, Attributes, RuleResolver},
    kinds::core::{node, service_account},
    names::NameRule,
    request::{
        ANONYMOUS, AUTHENTICATED, Caller, Params, ResourcePath, UNAUTHENTICATED, User, decode, parse_path,
        requested_verb,
    },
    status::StatusError,
    validation,
};

/// The header with the user name.
const USER: &str = "impersonate-user";
/// The header with the uid of the user.
const UID: &str = "impersonate-uid";
/// The header with a group; it may occur several times.
const GROUP: &str = "impersonate-group";
/// Prefix of headers with extra values; the key follows it.
const EXTRA: &str = "impersonate-extra-";
/// The group of virtual resources such as `uids` and `userextras`.
const AUTHENTICATION: &str = "authentication.k8s.io";
/// With this many groups or extra values, one check for all of them is tried first. Upstream checks the wildcard first
/// then, to save requests to its authorizer.
const MANY: usize = 4;
/// The extra field of a service account token with the node of its Pod.
const NODE_NAME: &str = "authentication.kubernetes.io/node-name";

/// Returns the caller that a request acts as: the impersonated user, or the caller itself without these headers. The
/// first mode that fits the headers and allows the impersonation is used. The audit log and admission then see the
/// impersonated user only.
///
/// Upstream also caches the last mode of each caller and tries it first (`modeIndexCache`). So an error, and the groups
/// of an impersonated node, depend on earlier requests there, and here on this request alone.
///
/// # Errors
/// Fails if the headers name no user, or with the error of the first mode if none allows it.
pub(crate) fn impersonate(resolver: &impl RuleResolver, caller: &Caller, parts: &Parts) -> Result<Caller, StatusError> {
    let Some(requested) = requested_user(&parts.headers)? else { return Ok(caller.clone()) };
    let attempt = Attempt { resolver, caller, parts, requested: &requested };
    let mut first = None;
    for mode in MODES.iter().filter(|mode| (mode.fits)(&requested, caller)) {
        match attempt.allowed_by(mode) {
            Ok(user) => return Ok(user),
            Err(error) => first = first.or(Some(error)),
        }
    }
    Err(first.unwrap_or_else(|| StatusError::bad_request("all impersonation modes failed")))
}

/// Returns the user that the headers name. Values that are not UTF-8 are replaced. Header names are lower case, and
/// percent escapes in extra keys are decoded.
fn requested_user(headers: &HeaderMap) -> Result<Option<Caller>, StatusError> {
    let text = |value: &http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    let header = |name: &str| headers.get(name).map(text).unwrap_or_default();
    let mut extra: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (name, value) in headers {
        if let Some(key) = name.as_str().strip_prefix(EXTRA) {
            extra.entry(decode(key)).or_default().push(text(value));
        }
    }
    let groups: Vec<String> = headers.get_all(GROUP).iter().map(text).collect();
    let caller = Caller { user: User { name: header(USER), groups }, uid: header(UID), extra };
    if !caller.user.name.is_empty() {
        return Ok(Some(caller));
    }
    if caller.user.groups.is_empty() && caller.uid.is_empty() && caller.extra.is_empty() {
        return Ok(None);
    }
    Err(StatusError::bad_request("Impersonate-User must be set if another impersonation header is set"))
}

/// A mode of impersonation.
struct Mode {
    /// The name in the verb; empty for the verb `impersonate`, which allows all users.
    name: &'static str,
    /// Returns `true` if the mode applies to the requested user and the caller.
    fits: fn(&Caller, &Caller) -> bool,
}

impl Mode {
    /// Returns `true` if the mode is narrower than the verb `impersonate`.
    fn is_constrained(&self) -> bool {
        !self.name.is_empty()
    }
}

/// All modes, in the order in which they are tried. From the narrowest to the widest.
const MODES: &[Mode] = &[
    Mode { name: "associated-node", fits: is_own_node },
    Mode { name: "arbitrary-node", fits: |requested, _| is_only_named(requested) && node(requested).is_some() },
    Mode {
        name: "serviceaccount",
        fits: |requested, _| is_only_named(requested) && account(&requested.user).is_some(),
    },
    Mode { name: "user-info", fits: |requested, _| node(requested).is_none() && account(&requested.user).is_none() },
    Mode { name: "", fits: |_, _| true },
];

/// Returns `true` if the headers name only a user. The server adds the groups of nodes and service accounts itself.
fn is_only_named(requested: &Caller) -> bool {
    requested.user.groups.is_empty() && requested.uid.is_empty() && requested.extra.is_empty()
}

/// Returns `true` if a service account impersonates the node on which its Pod runs. The node name is an extra field of
/// the caller's token.
fn is_own_node(requested: &Caller, caller: &Caller) -> bool {
    let own = caller.extra.get(NODE_NAME).map_or(&[] as &[String], Vec::as_slice);
    is_only_named(requested)
        && account(&caller.user).is_some()
        && node(requested).is_some_and(|name| own == [name.to_owned()])
}

/// Returns the name of a node user. `None` for another user, and for an invalid node name.
fn node(requested: &Caller) -> Option<&str> {
    let name = requested.user.name.strip_prefix("system:node:")?;
    NameRule::Subdomain.check(name).is_none().then_some(name)
}

/// Returns the namespace and name of a service account.
fn account(user: &User) -> Option<(&str, &str)> {
    let (namespace, name) = user.name.strip_prefix("system:serviceaccount:")?.split_once(':')?;
    let is_right = NameRule::Label.check(namespace).is_none() && NameRule::Subdomain.check(name).is_none();
    is_right.then_some((namespace, name))
}

/// An attempt to impersonate a user.
struct Attempt<'a, R> {
    resolver: &'a R,
    caller: &'a Caller,
    parts: &'a Parts,
    requested: &'a Caller,
}

impl<R: RuleResolver> Attempt<'_, R> {
    /// Returns the impersonated caller if a mode allows it. Adds the groups that the impersonated user has as a node or
    /// service account, and `system:authenticated`.
    fn allowed_by(&self, mode: &Mode) -> Result<Caller, StatusError> {
        let is_constrained = mode.is_constrained();
        let verb = if is_constrained { format!("impersonate:{}", mode.name) } else { "impersonate".to_owned() };
        if is_constrained {
            self.check_request(mode.name)?;
        }
        let group = if is_constrained { AUTHENTICATION } else { "" };
        let mut user = self.requested.clone();
        let name = user.user.name.clone();
        let (resource, namespace, name) = match (node(self.requested), account(&self.requested.user)) {
            (Some(node), _) if is_constrained => {
                user.user.groups = vec!["system:nodes".into()];
                (node::KIND.resource, "", if mode.name == "associated-node" { "*" } else { node })
            }
            (_, Some((namespace, name))) => {
                if user.user.groups.is_empty() {
                    let own = format!("system:serviceaccounts:{namespace}");
                    user.user.groups = vec!["system:serviceaccounts".into(), own];
                }
                (service_account::KIND.resource, namespace, name)
            }
            _ => ("users", "", name.as_str()),
        };
        self.check(&Attributes { verb: &verb, group, resource, subresource: "", namespace, name })?;
        if !self.requested.uid.is_empty() {
            self.check(&Attributes { name: &self.requested.uid, ..authentication_attributes(&verb, "uids", "") })?;
        }
        self.check_groups(&verb, group, mode)?;
        self.check_extra(&verb, mode)?;
        let default_group = if user.user.name == ANONYMOUS { UNAUTHENTICATED } else { AUTHENTICATED };
        let has = |group: &str| user.user.groups.iter().any(|member_of| member_of == group);
        if !has(default_group) && !has(UNAUTHENTICATED) {
            user.user.groups.push(default_group.into());
        }
        Ok(user)
    }

    /// Checks that the caller may send this request by this mode. A constrained mode needs a second permission, for the
    /// request itself. The path is decoded first, as `RequestInfo::parse` does: otherwise `pods/a%2Flog` would be
    /// checked as a Pod and then read as its log.
    fn check_request(&self, mode: &str) -> Result<(), StatusError> {
        let path = decode(self.parts.uri.path());
        let method = self.parts.method.as_str().to_lowercase();
        let Some(resource_path) = parse_path(&path) else {
            let verb = format!("impersonate-on:{mode}:{method}");
            if authorizer::allows_path(self.resolver, &self.caller.user, &verb, &path) {
                return Ok(());
            }
            return Err(authorizer::forbidden_path(&self.caller.user, &verb, &path));
        };
        let params = Params::parse(self.parts.uri.query().unwrap_or_default());
        let verb = match requested_verb(&self.parts.method, &resource_path, &params) {
            Some(verb) => verb.name(),
            None => &method,
        };
        let ResourcePath { group, namespace, resource, name, subresource, .. } = resource_path;
        let verb = format!("impersonate-on:{mode}:{verb}");
        let namespace = authorizer::object_namespace(resource, namespace, name);
        self.check(&Attributes { verb: &verb, group, resource, subresource, namespace, name })
    }

    /// Checks that the caller has a permission.
    fn check(&self, attributes: &Attributes<'_>) -> Result<(), StatusError> {
        if authorizer::is_allowed(self.resolver, &self.caller.user, attributes) {
            return Ok(());
        }
        Err(authorizer::forbidden(&self.caller.user, attributes))
    }

    /// Checks that the caller may impersonate the groups. Constrained modes never allow the empty group and
    /// `system:masters`.
    fn check_groups(&self, verb: &str, group: &str, mode: &Mode) -> Result<(), StatusError> {
        let groups = &self.requested.user.groups;
        let group_attributes = Attributes { verb, group, resource: "groups", subresource: "", namespace: "", name: "" };
        if mode.is_constrained() {
            for name in ["", "system:masters"] {
                if groups.iter().any(|group| group == name) {
                    return Err(authorizer::forbidden(&self.caller.user, &Attributes { name, ..group_attributes }));
                }
            }
            if groups.len() >= MANY && self.check(&Attributes { name: "*", ..group_attributes }).is_ok() {
                return Ok(());
            }
        }
        groups.iter().try_for_each(|name| self.check(&Attributes { name, ..group_attributes }))
    }

    /// Checks that the caller may impersonate the extra values. The key is the subresource, the value the name.
    fn check_extra(&self, verb: &str, mode: &Mode) -> Result<(), StatusError> {
        let extra = &self.requested.extra;
        let n_values: usize = extra.values().map(Vec::len).sum();
        let forbidden =
            || Err(authorizer::forbidden(&self.caller.user, &authentication_attributes(verb, "userextras", "")));
        let is_wrong = |key: &String| !validation::domain_prefixed("extra.key", key).is_empty();
        if mode.is_constrained() && extra.keys().any(is_wrong) {
            return forbidden();
        }
        let many = Attributes { name: "*", ..authentication_attributes(verb, "userextras", "*") };
        if mode.is_constrained() && n_values >= MANY && self.check(&many).is_ok() {
            return Ok(());
        }
        let all = extra.iter().flat_map(|(key, values)| values.iter().map(move |value| (key, value)));
        for (key, value) in all {
            if mode.is_constrained() && value.is_empty() {
                return forbidden();
            }
            self.check(&Attributes { name: value, ..authentication_attributes(verb, "userextras", key) })?;
        }
        Ok(())
    }
}

/// Returns attributes in the group `authentication.k8s.io`.
fn authentication_attributes<'a>(verb: &'a str, resource: &'a str, subresource: &'a str) -> Attributes<'a> {
    Attributes { verb, group: AUTHENTICATION, resource, subresource, namespace: "", name: "" }
}

#[cfg(test)]
mod tests {
    use http::Request;
    use serde_json::{Value, json};

    use crate::{ApiServer, User};

    /// Grants rules to a user in the whole cluster.
    async fn grant(server: &ApiServer, user: &str, rules: Value) {
        let role = json!({ "metadata": { "name": user }, "rules": rules });
        let binding = json!({
            "metadata": { "name": user },
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": user },
            "subjects": [{ "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user }],
        });
        for (kind, object) in [("clusterroles", role), ("clusterrolebindings", binding)] {
            server.succeed("POST", &format!("/apis/rbac.authorization.k8s.io/v1/{kind}"), &object).await;
        }
    }

    #[tokio::test]
    async fn encoded_path_needs_permission_of_decoded_path() {
        let server = ApiServer::new();
        let everything = json!([{ "verbs": ["*"], "apiGroups": ["*"], "resources": ["*"] }]);
        grant(&server, "pat", everything).await;
        let rules = json!([
            { "verbs": ["impersonate:user-info"], "apiGroups": ["authentication.k8s.io"], "resources": ["users"] },
            { "verbs": ["impersonate-on:user-info:get"], "apiGroups": [""], "resources": ["pods"] },
            { "verbs": ["impersonate-on:user-info:get"], "nonResourceURLs": ["*"] },
        ]);
        grant(&server, "jane", rules).await;
        let pods = "/api/v1/namespaces/default/pods";
        for (path, code) in [
            (format!("{pods}/a"), 404),
            (format!("{pods}/%61"), 404),
            (format!("{pods}/a/log"), 403),
            (format!("{pods}/a%2Flog"), 403),
            ("/version".to_owned(), 200),
            ("/api/v1/nodes/a".to_owned(), 403),
            ("/%61pi/v1/nodes/a".to_owned(), 403),
        ] {
            let request = Request::get(&path).header("impersonate-user", "pat");
            let response = server.service_as(User::new("jane")).send_request(request, "").await;
            assert_eq!(response.status(), code, "{path}: {}", response.body());
        }
    }
}
