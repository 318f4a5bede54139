//! Whether a user may do what a call asks for: RBAC, as the authorizer of the real server evaluates it.

use http::{StatusCode, request::Parts};
use serde_json::{Value, json};

use super::grants::{Grant, Known};
use crate::{
    request::{Call, Params, Place, User, Verb, asked, decode, place},
    selector,
    status::{GroupResource, Refusal},
    store::State,
};

/// What is asked for, in the words of a rule.
#[derive(Clone, Copy)]
pub(crate) struct Attributes<'a> {
    pub(crate) verb: &'a str,
    pub(crate) group: &'a str,
    pub(crate) resource: &'a str,
    pub(crate) subresource: &'a str,
    pub(crate) namespace: &'a str,
    pub(crate) name: &'a str,
}

pub(super) fn authorize(state: &State, call: &Call) -> Result<(), Refusal> {
    authorize_to(call.verb.name(), state, call).map_err(Refusal::of_filter)
}

/// Whoever applies or updates an object that is not there creates it (upstream, `endpoints/handlers/patch.go` and `update.go`).
pub(super) fn authorize_creation(state: &State, call: &Call) -> Result<(), Refusal> {
    authorize_to("create", state, call)
}

fn authorize_to(verb: &str, state: &State, call: &Call) -> Result<(), Refusal> {
    // A list or a watch of one object by its name may be allowed by a rule about that name (upstream,
    // `endpoints/request/requestinfo.go`).
    let selected = match call.verb {
        Verb::List | Verb::Watch => selector::name_of(call.params.text("fieldSelector")),
        _ => None,
    };
    // A namespace is in itself.
    let is_namespace = call.resource.of.group.is_empty() && call.resource.of.resource == "namespaces";
    let attributes = Attributes {
        verb,
        group: &call.resource.of.group,
        resource: &call.resource.of.resource,
        subresource: &call.subresource,
        namespace: if is_namespace { &call.name } else { &call.namespace },
        name: selected.as_deref().unwrap_or(&call.name),
    };
    if allowed(state, &call.caller.user, &attributes) {
        return Ok(());
    }
    Err(denied(state, &call.caller.user, &attributes))
}

/// What a request asks for that no verb is about: a kind that there is not, or what cannot be done with it. Whoever may not
/// do that is not told.
pub(crate) fn authorize_unknown(state: &State, user: &User, parts: &Parts) -> Result<(), Refusal> {
    let path = decode(parts.uri.path());
    let Some(place) = place(&path) else { return Ok(()) };
    let params = Params::parse(parts.uri.query().unwrap_or_default());
    let verb = asked(&parts.method, &place, &params).map_or("", Verb::name);
    let Place { group, resource, subresource, name, .. } = place;
    let is_namespace = group.is_empty() && resource == "namespaces";
    let namespace = if is_namespace { name } else { place.namespace };
    let attributes = Attributes { verb, group, resource, subresource, namespace, name };
    if allowed(state, user, &attributes) {
        return Ok(());
    }
    Err(denied(state, user, &attributes).of_filter())
}

/// Tells a user that something is not allowed, with the roles that could have allowed it and are not there.
fn denied(state: &State, user: &User, asked: &Attributes<'_>) -> Refusal {
    let mut refusal = forbidden(user, asked);
    if let Some(reason) = denial(state, user, asked.namespace) {
        refusal.message = format!("{}: {reason}", refusal.message);
    }
    refusal
}

/// What the authorizer says beside a no.
pub(crate) fn denial(known: &impl Known, user: &User, namespace: &str) -> Option<String> {
    known.grants(user, namespace).reason()
}

/// Tells a user that something is not allowed.
pub(super) fn forbidden(user: &User, asked: &Attributes<'_>) -> Refusal {
    let Attributes { verb, group, resource, subresource, namespace, name } = asked;
    let whole = if subresource.is_empty() { (*resource).to_owned() } else { format!("{resource}/{subresource}") };
    let scope = if namespace.is_empty() {
        "at the cluster scope".to_owned()
    } else {
        format!("in the namespace {namespace:?}")
    };
    let why = format!("User {:?} cannot {verb} resource {whole:?} in API group {group:?} {scope}", user.name);
    Refusal::forbidden(&GroupResource::new(group, resource), name, &why)
}

/// The same of a path that is not about objects.
pub(crate) fn forbidden_path(user: &User, verb: &str, path: &str) -> Refusal {
    let why = format!("forbidden: User {:?} cannot {verb} path {path:?}", user.name);
    let mut refusal = Refusal::new(StatusCode::FORBIDDEN, "Forbidden", why);
    refusal.details = json!({});
    refusal.of_filter()
}

/// Whether a user may do everything.
pub(crate) fn is_admin(user: &User) -> bool {
    user.groups.iter().any(|group| group == "system:masters")
}

/// Whether the roles that are bound to a user allow it.
pub(crate) fn allowed(known: &impl Known, user: &User, asked: &Attributes<'_>) -> bool {
    is_admin(user) || granted(known, user, asked).is_some()
}

/// The binding that allows it, in the words of the real server.
pub(crate) fn granted(known: &impl Known, user: &User, asked: &Attributes<'_>) -> Option<String> {
    let resources = Resources::of(asked);
    let grants = known.grants(user, asked.namespace);
    grants.grants.iter().find(|grant| allows(&grant.rule, asked, &resources)).map(Grant::text)
}

/// Whether a user may use a path that is not about a resource.
pub(crate) fn allows_path(known: &impl Known, user: &User, verb: &str, path: &str) -> bool {
    is_admin(user) || granted_path(known, user, verb, path).is_some()
}

/// The binding that allows it.
pub(crate) fn granted_path(known: &impl Known, user: &User, verb: &str, path: &str) -> Option<String> {
    let grants = known.grants(user, "");
    let allowing = grants.grants.iter().find(|Grant { rule, .. }| {
        let has = |field: &str, fits: &dyn Fn(&str) -> bool| {
            rule[field].as_array().into_iter().flatten().filter_map(Value::as_str).any(fits)
        };
        has("verbs", &|known| known == "*" || known == verb) && has("nonResourceURLs", &|known| covers(known, path))
    });
    allowing.map(Grant::text)
}

fn covers(known: &str, path: &str) -> bool {
    known == path || known.strip_suffix('*').is_some_and(|start| path.starts_with(start))
}

/// What a user may do in a namespace: rules about resources, and about paths.
pub(crate) fn rules_of(state: &State, user: &User, namespace: &str) -> (Vec<Value>, Vec<Value>) {
    let grants = state.grants(user, namespace);
    grants.grants.iter().map(|grant| grant.rule.clone()).partition(|rule| rule["nonResourceURLs"].is_null())
}

/// The words with which rules name what is asked for.
struct Resources {
    /// With the subresource.
    own: String,
    /// The subresource of any resource.
    any: Option<String>,
}

impl Resources {
    fn of(asked: &Attributes<'_>) -> Self {
        if asked.subresource.is_empty() {
            return Self { own: asked.resource.to_owned(), any: None };
        }
        let subresource = asked.subresource;
        Self { own: format!("{}/{subresource}", asked.resource), any: Some(format!("*/{subresource}")) }
    }
}

fn allows(rule: &Value, asked: &Attributes<'_>, resources: &Resources) -> bool {
    let has = |field: &str, wanted: &str| {
        rule[field].as_array().into_iter().flatten().any(|known| known == "*" || known == wanted)
    };
    let names = rule["resourceNames"].as_array();
    has("verbs", asked.verb)
        && has("apiGroups", asked.group)
        && (has("resources", &resources.own) || resources.any.as_ref().is_some_and(|any| has("resources", any)))
        && names.is_none_or(|names| names.is_empty() || names.iter().any(|name| name == asked.name))
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::{
        Api, Client,
        api::{Patch, PatchParams, PostParams},
    };
    use serde_json::{Value, json};

    use crate::{ApiServer, User};

    async fn grant(server: &ApiServer, verbs: &[&str]) {
        let admin = Client::new(server.service(), "default");
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
            let request = http::Request::post(path).body(serde_json::to_vec(&object).unwrap()).unwrap();
            admin.request::<Value>(request).await.unwrap();
        }
    }

    #[tokio::test]
    async fn apply_that_creates_needs_to_be_allowed_to_create() {
        let server = ApiServer::new();
        grant(&server, &["patch"]).await;
        let user = User { name: "pat".into(), groups: vec!["system:authenticated".into()] };
        let configs = Api::<ConfigMap>::default_namespaced(Client::new(server.service_as(user), "default"));
        let config: ConfigMap = serde_json::from_value(json!({ "metadata": { "name": "x" } })).unwrap();
        let (with, patch) = (PatchParams::apply("test"), Patch::Apply(&config));
        let Err(kube::Error::Api(status)) = configs.patch("x", &with, &patch).await else { panic!("it is refused") };
        // As kube-apiserver 1.36 says it.
        let said = "configmaps \"x\" is forbidden: User \"pat\" cannot create resource \"configmaps\" in API group \"\" in the namespace \"default\"";
        assert_eq!((status.code, status.message.as_str()), (403, said));
        let admin = Api::<ConfigMap>::default_namespaced(Client::new(server.service(), "default"));
        admin.create(&PostParams::default(), &config).await.unwrap();
        configs.patch("x", &with, &patch).await.unwrap();
    }
}
