//! Authorizes requests with RBAC (`plugin/pkg/auth/authorizer/rbac` of kube-apiserver).
//!
//! RBAC is the only authorizer, apart from the group `system:masters`. It allows a request or has no opinion, which is
//! a denial here.

mod rules;

use http::{StatusCode, request::Parts};
use serde_json::Value;

pub(crate) use self::rules::{RBAC, Rbac, RuleCache, RuleResolver, Snapshot, UserRules};
use crate::{
    kinds::core::namespace,
    request::{ADMINISTRATORS, Params, RequestInfo, ResourcePath, User, Verb, decode, parse_path, requested_verb},
    selector,
    status::{GroupResource, StatusError},
};

/// The attributes of a request that RBAC rules are compared with.
#[derive(Clone, Copy)]
pub(crate) struct Attributes<'a> {
    /// The verb, such as `get`, in lowercase.
    pub(crate) verb: &'a str,
    /// The API group; empty for the core group.
    pub(crate) group: &'a str,
    /// The plural name.
    pub(crate) resource: &'a str,
    /// The subresource; empty for the object itself.
    pub(crate) subresource: &'a str,
    /// The namespace; empty for cluster-scoped requests.
    pub(crate) namespace: &'a str,
    /// The name of the object; empty for collections.
    pub(crate) name: &'a str,
}

/// Returns the namespace in which a request has to be allowed: the namespace in the path, and for a Namespace object
/// its name. The group is not compared, because `k8s.io/apiserver/pkg/endpoints/request/requestinfo.go` does not
/// compare it either: in `namespaces/NAME`, any group's, it takes the name as the namespace.
pub(crate) fn object_namespace<'a>(resource: &str, namespace: &'a str, name: &'a str) -> &'a str {
    if namespace.is_empty() && resource == namespace::KIND.resource { name } else { namespace }
}

/// Checks that the user of a request may send it. The first step of each request, after authentication and
/// impersonation.
///
/// # Errors
/// Fails with 403 if no role allows it.
pub(crate) fn authorize(resolver: &impl RuleResolver, info: &RequestInfo) -> Result<(), StatusError> {
    authorize_to(info.verb.name(), resolver, info).map_err(StatusError::into_filter_error)
}

/// Checks that a user who applies or updates an object that does not exist may create it (`endpoints/handlers/patch.go`
/// and `update.go` of `k8s.io/apiserver`). The message differs from the first check's only in the verb.
///
/// # Errors
/// Fails with 403 if no role allows it.
pub(crate) fn authorize_creation(resolver: &impl RuleResolver, info: &RequestInfo) -> Result<(), StatusError> {
    authorize_to("create", resolver, info)
}

/// Checks that the user of a request may use a verb on its object.
fn authorize_to(verb: &str, resolver: &impl RuleResolver, info: &RequestInfo) -> Result<(), StatusError> {
    // A rule with `resourceNames` also allows a list or watch that selects one of these names
    // (`endpoints/request/requestinfo.go`).
    let selected = match info.verb {
        Verb::List | Verb::Watch => selector::name_of(info.params.text("fieldSelector")),
        _ => None,
    };
    let attributes = Attributes {
        verb,
        group: &info.resource.id.group,
        resource: &info.resource.id.resource,
        subresource: info.subresource.as_str(),
        namespace: object_namespace(&info.resource.id.resource, &info.namespace, &info.name),
        name: selected.as_deref().unwrap_or(&info.name),
    };
    check(resolver, &info.caller.user, &attributes)
}

/// Checks that a user may send a request that fails anyway, because its resource is not served or does not support the
/// verb. A user without permission does not learn which resources exist.
///
/// # Errors
/// Fails with 403 if no role allows it.
pub(crate) fn authorize_unknown(resolver: &impl RuleResolver, user: &User, parts: &Parts) -> Result<(), StatusError> {
    let path = decode(parts.uri.path());
    let Some(resource_path) = parse_path(&path) else { return Ok(()) };
    let params = Params::parse(parts.uri.query().unwrap_or_default());
    let verb = requested_verb(&parts.method, &resource_path, &params).map_or("", Verb::name);
    let ResourcePath { group, resource, subresource, name, .. } = resource_path;
    let namespace = object_namespace(resource, resource_path.namespace, name);
    let attributes = Attributes { verb, group, resource, subresource, namespace, name };
    check(resolver, user, &attributes).map_err(StatusError::into_filter_error)
}

/// Checks that a user may send a request with these attributes. The error names roles that are bound to the user but do
/// not exist, so that a broken binding can be found.
fn check(resolver: &impl RuleResolver, user: &User, attributes: &Attributes<'_>) -> Result<(), StatusError> {
    if is_allowed(resolver, user, attributes) {
        return Ok(());
    }
    Err(forbidden(user, attributes).because(&missing_roles(resolver, user, attributes.namespace).unwrap_or_default()))
}

/// Returns an error that names the roles which are bound to the user and do not exist.
pub(crate) fn missing_roles(resolver: &impl RuleResolver, user: &User, namespace: &str) -> Option<String> {
    resolver.rules_for(user, namespace).error()
}

/// Returns the error for a user without permission. Upstream: `responsewriters.Forbidden` and its message for
/// resources.
pub(crate) fn forbidden(user: &User, attributes: &Attributes<'_>) -> StatusError {
    let Attributes { verb, group, resource, subresource, namespace, name } = attributes;
    let whole = if subresource.is_empty() { (*resource).to_owned() } else { format!("{resource}/{subresource}") };
    let scope = if namespace.is_empty() {
        "at the cluster scope".to_owned()
    } else {
        format!("in the namespace {namespace:?}")
    };
    let why = format!("User {:?} cannot {verb} resource {whole:?} in API group {group:?} {scope}", user.name);
    StatusError::forbidden(&GroupResource::new(group, resource), name, &why)
}

/// Returns the error for a user without permission for a non-resource path.
pub(crate) fn forbidden_path(user: &User, verb: &str, path: &str) -> StatusError {
    let why = format!("forbidden: User {:?} cannot {verb} path {path:?}", user.name);
    StatusError::new(StatusCode::FORBIDDEN, "Forbidden", why).with_empty_details().into_filter_error()
}

/// Returns `true` if a user may do everything.
pub(crate) fn is_admin(user: &User) -> bool {
    user.groups.iter().any(|group| group == ADMINISTRATORS)
}

/// Returns `true` if a user may send a request with these attributes.
pub(crate) fn is_allowed(resolver: &impl RuleResolver, user: &User, attributes: &Attributes<'_>) -> bool {
    let has_rule = || {
        let resources = Resources::from_attributes(attributes);
        let user_rules = resolver.rules_for(user, attributes.namespace);
        user_rules.rules.iter().any(|rule| allows(rule, attributes, &resources))
    };
    is_admin(user) || has_rule()
}

/// Returns `true` if a user may use a non-resource path.
pub(crate) fn allows_path(resolver: &impl RuleResolver, user: &User, verb: &str, path: &str) -> bool {
    let has_rule = || resolver.rules_for(user, "").rules.iter().any(|rule| rule_allows_path(rule, verb, path));
    is_admin(user) || has_rule()
}

/// Returns `true` if a rule allows a verb on a non-resource path.
fn rule_allows_path(rule: &Value, verb: &str, path: &str) -> bool {
    let has = |field: &str, fits: &dyn Fn(&str) -> bool| {
        rule[field].as_array().into_iter().flatten().filter_map(Value::as_str).any(fits)
    };
    has("verbs", &|listed| listed == "*" || listed == verb) && has("nonResourceURLs", &|pattern| covers(pattern, path))
}

/// Returns the reason why a user may send a request, for access reviews and CEL. Empty for administrators, because they
/// need no rule.
pub(crate) fn allow_reason(user: &User) -> &'static str {
    if is_admin(user) { "" } else { "RBAC: a role of the user allows it" }
}

/// Returns `true` if a `nonResourceURLs` entry matches a path. A final `*` matches any rest.
fn covers(pattern: &str, path: &str) -> bool {
    pattern == path || pattern.strip_suffix('*').is_some_and(|start| path.starts_with(start))
}

/// Returns the rules of a user in a namespace: those for resources, and those for non-resource paths. Used for
/// `SelfSubjectRulesReview`. Rules are not merged.
pub(crate) fn rules_of(resolver: &impl RuleResolver, user: &User, namespace: &str) -> (Vec<Value>, Vec<Value>) {
    let user_rules = resolver.rules_for(user, namespace);
    user_rules.rules.iter().cloned().partition(|rule| rule["nonResourceURLs"].is_null())
}

/// The names under which a rule may list the resource of a request.
struct Resources {
    /// The resource with its subresource, such as `pods/status`.
    own: String,
    /// The subresource of any resource, such as `*/status`.
    any: Option<String>,
}

impl Resources {
    /// Returns the names for the resource of a request.
    fn from_attributes(attributes: &Attributes<'_>) -> Self {
        if attributes.subresource.is_empty() {
            return Self { own: attributes.resource.to_owned(), any: None };
        }
        let subresource = attributes.subresource;
        Self { own: format!("{}/{subresource}", attributes.resource), any: Some(format!("*/{subresource}")) }
    }
}

/// Returns `true` if a rule allows the request. Names restrict a rule to these objects; an empty list allows all.
/// Creates have no name, so a rule with names never allows them.
fn allows(rule: &Value, attributes: &Attributes<'_>, resources: &Resources) -> bool {
    let has = |field: &str, value: &str| {
        rule[field].as_array().into_iter().flatten().any(|listed| listed == "*" || listed == value)
    };
    let names = rule["resourceNames"].as_array();
    has("verbs", attributes.verb)
        && has("apiGroups", attributes.group)
        && (has("resources", &resources.own) || resources.any.as_ref().is_some_and(|any| has("resources", any)))
        && names.is_none_or(|names| names.is_empty() || names.iter().any(|name| name == attributes.name))
}

#[cfg(test)]
mod tests {
    use http::Request;
    use serde_json::json;

    use super::object_namespace;
    use crate::{ApiServer, User};

    #[test]
    fn namespace_object_is_in_its_own_namespace() {
        let check = |resource, namespace, name, expected: &str| {
            assert_eq!(object_namespace(resource, namespace, name), expected, "{resource} {namespace:?} {name:?}");
        };
        check("namespaces", "", "a", "a");
        check("namespaces", "", "", "");
        // A custom kind may have this plural, too.
        check("namespaces", "a", "b", "a");
        check("nodes", "", "a", "");
    }

    async fn grant(server: &ApiServer, verbs: &[&str]) {
        let role = json!({
            "metadata": { "name": "pat" },
            "rules": [{ "apiGroups": [""], "resources": ["configmaps"], "verbs": verbs }],
        });
        let binding = json!({
            "metadata": { "name": "pat" },
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "pat" },
            "subjects": [{ "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "pat" }],
        });
        for (kind, object) in [("clusterroles", role), ("clusterrolebindings", binding)] {
            let path = format!("/apis/rbac.authorization.k8s.io/v1/{kind}");
            server.succeed("POST", &path, &object).await;
        }
    }

    #[tokio::test]
    async fn creating_apply_needs_the_create_verb() {
        let server = ApiServer::new();
        grant(&server, &["patch"]).await;
        let configs = "/api/v1/namespaces/default/configmaps";
        let config = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "x" } });
        let apply = async || {
            let request = Request::patch(format!("{configs}/x?fieldManager=test"));
            let request = request.header("content-type", "application/apply-patch+yaml");
            server.service_as(User::new("pat")).send_request(request, config.to_string()).await.status()
        };
        assert_eq!(apply().await, 403);
        server.succeed("POST", configs, &config).await;
        assert_eq!(apply().await, 200);
    }
}
