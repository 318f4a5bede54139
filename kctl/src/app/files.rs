//! Objects from YAML and JSON, and how they are applied to an API server.

use std::collections::BTreeSet;

use http::{Method, Request};
use k8s_openapi::{
    api::core::v1::Namespace, apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
    apimachinery::pkg::apis::meta::v1::APIResourceList,
};
use kctl_apimachinery::url::escape;
use kctl_runtime::{
    manifest::{self, Permission, PermissionScope, RbacOptions},
    object::Kind,
    reconcile::{Error, Result, ResultExt},
};
use kube::{Api, Client};
use serde_json::{Value, json};

use super::settings::closest_name;
use crate::yaml::{self, from_yaml_stream};

/// An object, and the file that it comes from, which error messages name.
pub(crate) struct FromFile {
    pub(crate) object: Value,
    pub(crate) origin: String,
}

/// Creates the namespaces that a role is for. Only for embedded servers: in a real cluster, a namespace that does not exist
/// is a mistake of the user.
pub(crate) async fn create_namespaces(client: &Client, permissions: &[Permission]) -> Result<()> {
    let names: BTreeSet<&str> = permissions
        .iter()
        .filter_map(|permission| match &permission.scope {
            PermissionScope::Namespace(name) => Some(name.as_str()),
            PermissionScope::Everywhere => None,
        })
        .collect();
    let existing = Api::<Namespace>::all(client.clone());
    for name in names {
        if existing.get_opt(name).await?.is_some() {
            continue;
        }
        let object = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } });
        apply(client, &[FromFile { object, origin: "namespaces of the controllers".to_owned() }]).await?;
    }
    Ok(())
}

/// Installs the CRDs of an app's kinds, and its role.
pub(crate) async fn install(
    client: &Client,
    definitions: &[CustomResourceDefinition],
    permissions: &[Permission],
    options: &RbacOptions,
) -> Result<()> {
    let mut objects = Vec::new();
    for definition in definitions {
        objects.push(serde_json::to_value(definition)?);
    }
    objects.extend(manifest::rbac_of(permissions, options)?.into_iter().map(|manifest| manifest.object));
    let origin = || "generated manifests".to_owned();
    let files = objects.into_iter().map(|object| FromFile { object, origin: origin() });
    apply(client, &files.collect::<Vec<_>>()).await
}

/// Parses a stream of documents, and checks that each has `apiVersion`, `kind` and `metadata.name`.
pub(crate) fn parse(text: &str, origin: &str, objects: &mut Vec<FromFile>) -> Result<()> {
    let documents: Vec<Value> =
        from_yaml_stream(text).map_err(|error| Error::from(format!("{origin}: {}", yaml::describe(&error))))?;
    let found = documents.into_iter().flat_map(split_list).filter(|document| !document.is_null());
    for (nth, object) in (1..).zip(found) {
        for field in ["/apiVersion", "/kind", "/metadata/name"] {
            if object.pointer(field).and_then(Value::as_str).is_none() {
                let kind = object["kind"].as_str().map_or_else(String::new, |kind| format!(" ({kind})"));
                let field = field[1..].replace('/', ".");
                return Err(Error::from(format!("{origin}: object {nth}{kind} has no `{field}`")));
            }
        }
        objects.push(FromFile { object, origin: origin.into() });
    }
    Ok(())
}

/// Returns the items of a list, as `kubectl get -o yaml` prints several objects; other documents as
/// they are.
fn split_list(mut document: Value) -> Vec<Value> {
    let is_list = document["kind"].as_str().is_some_and(|kind| kind.ends_with("List"));
    match document.get_mut("items") {
        Some(Value::Array(items)) if is_list => std::mem::take(items),
        _ => vec![document],
    }
}

/// Applies objects with server-side apply, like `kubectl apply --server-side --force-conflicts`.
/// Without a namespace they go to `default`.
pub(crate) async fn apply(client: &Client, objects: &[FromFile]) -> Result<()> {
    for FromFile { object, origin } in objects {
        let field = |path: &str| object.pointer(path).and_then(Value::as_str).unwrap_or_default();
        let (kind, name) = (field("/kind"), field("/metadata/name"));
        let path = path(client, object).await.context(format!("{origin}: {kind} {name}"))?;
        let request = Request::builder()
            .method(Method::PATCH)
            .uri(format!("{path}/{}?fieldManager=kctl-dev&force=true", escape(name)))
            .header("content-type", "application/apply-patch+yaml")
            .body(serde_json::to_vec(object)?)?;
        let _applied: Value = client.request(request).await.context(format!("{origin}: {kind} {name}"))?;
    }
    Ok(())
}

/// Returns `true` if an API server serves a kind.
///
/// # Errors
/// The server answers with an error other than 404.
pub(super) async fn has_kind(client: &Client, kind: &Kind) -> Result<bool> {
    let Kind { group, version, plural, .. } = kind;
    let root = if group.is_empty() { format!("/api/{version}") } else { format!("/apis/{group}/{version}") };
    match client.request::<APIResourceList>(Request::get(&root).body(Vec::new())?).await {
        Ok(served) => Ok(served.resources.iter().any(|resource| resource.name == *plural)),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Returns the URL path of the collection that an object belongs to, by discovery.
pub(crate) async fn path(client: &Client, object: &Value) -> Result<String> {
    let field = |path: &str| object.pointer(path).and_then(Value::as_str).unwrap_or_default();
    let (api, kind) = (field("/apiVersion"), field("/kind"));
    let root = if api.contains('/') { format!("/apis/{api}") } else { format!("/api/{api}") };
    let served = client.request::<APIResourceList>(Request::get(&root).body(Vec::new())?).await;
    let served = match served {
        Err(kube::Error::Api(status)) if status.code == 404 => {
            let what = format!("{api} is not served; apply its CRD first, or write a kind of this program");
            return Err(Error::from(format!("{what}, which `generate-crds` prints")));
        }
        served => served.context(root.clone())?,
    };
    let mut matching = served.resources.iter().filter(|resource| resource.kind == kind && !resource.name.contains('/'));
    let Some(resource) = matching.next() else {
        let kinds = served.resources.iter().filter(|resource| !resource.name.contains('/'));
        let is_missing = "is its CustomResourceDefinition missing?";
        // Groups of CRDs have a dot, and their kinds may differ in a few letters, such as TCPRoute and UDPRoute.
        let may_be_custom = api.split_once('/').is_some_and(|(group, _version)| group.contains('.'));
        let hint = match closest_name(kind, kinds.map(|resource| resource.kind.as_str())) {
            Some(meant) if may_be_custom => format!("is `{meant}` meant, or {is_missing}"),
            Some(meant) => format!("is `{meant}` meant?"),
            None => is_missing.to_owned(),
        };
        return Err(Error::from(format!("no kind {kind} in {api}: {hint}")));
    };
    if !resource.namespaced {
        return Ok(format!("{root}/{}", resource.name));
    }
    let namespace = object.pointer("/metadata/namespace").and_then(Value::as_str).unwrap_or("default");
    Ok(format!("{root}/namespaces/{}/{}", escape(namespace), resource.name))
}

#[cfg(test)]
mod tests {
    use kctl_apiserver::ApiServer;
    use kctl_runtime::manifest::PermissionTarget;

    use super::*;

    #[tokio::test]
    async fn namespaces_of_role_are_created_once() {
        let server = ApiServer::new();
        let client = Client::new(server.service(), "default");
        let permissions = ["default", "team-a", "team-a"].map(|namespace| Permission {
            scope: PermissionScope::Namespace(namespace.into()),
            target: PermissionTarget::Resource { group: String::new(), resource: "pods".into(), name: String::new() },
            verb: "get".into(),
            because: BTreeSet::new(),
            framework: false,
        });
        for _ in 0..2 {
            create_namespaces(&client, &permissions).await.unwrap();
        }
        let namespaces = Api::<Namespace>::all(client);
        assert!(namespaces.get_opt("team-a").await.unwrap().is_some());
    }

    #[tokio::test]
    async fn invalid_name_is_rejected_with_its_file() {
        let client = Client::new(ApiServer::new().service(), "default");
        for (name, namespace) in [("My web", "default"), ("web", "My shop"), ("w\u{fc}b?", "default")] {
            let metadata = json!({ "name": name, "namespace": namespace });
            let object = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata });
            let error =
                apply(&client, &[FromFile { object, origin: "web.yaml".into() }]).await.unwrap_err().to_string();
            assert!(error.starts_with(&format!("web.yaml: ConfigMap {name}: ")), "{error}");
            assert!(!error.contains("invalid uri"), "{error}");
        }
    }

    #[test]
    fn broken_yaml_names_the_file_and_the_line() {
        let mut objects = Vec::new();
        let error = parse("a: 1\nb:\n\tc: 2\n", "web.yaml", &mut objects).unwrap_err().to_string();
        let message = "tabs disallowed within this context (block indentation)";
        assert_eq!(error, format!("web.yaml: line 3, column 2: not valid YAML: {message}"));
    }

    #[test]
    fn modes_of_files_are_octal() {
        let mut objects = Vec::new();
        parse("{apiVersion: v1, kind: X, metadata: {name: a}, spec: {mode: 0644}}", "a.yaml", &mut objects).unwrap();
        assert_eq!(objects[0].object["spec"]["mode"], 420);
    }

    #[test]
    fn incomplete_object_is_rejected_by_its_position() {
        let cases = [
            ("apiVersion: v1\nkind: Pod\n", "web.yaml: object 2 (Pod) has no `metadata.name`"),
            ("apiVersion: v1\nmetadata: {name: b}\n", "web.yaml: object 2 has no `kind`"),
            ("hello\n", "web.yaml: object 2 has no `apiVersion`"),
        ];
        let pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n";
        for (second, expected) in cases {
            let error = parse(&format!("{pod}---\n{second}"), "web.yaml", &mut Vec::new()).unwrap_err().to_string();
            assert_eq!(error, expected);
        }
    }

    #[tokio::test]
    async fn misspelt_kind_gets_the_nearest_one() {
        let client = Client::new(ApiServer::new().service(), "default");
        let rbac = "rbac.authorization.k8s.io/v1";
        for (api, kind, hint) in [
            ("v1", "Configmap", "is `ConfigMap` meant?"),
            ("v1", "Gateway", "is its CustomResourceDefinition missing?"),
            (rbac, "Roles", "is `Role` meant, or is its CustomResourceDefinition missing?"),
        ] {
            let object = json!({ "apiVersion": api, "kind": kind, "metadata": { "name": "a" } });
            let error = path(&client, &object).await.unwrap_err().to_string();
            assert_eq!(error, format!("no kind {kind} in {api}: {hint}"));
        }
    }

    #[test]
    fn list_items_are_read_as_separate_objects() {
        let mut objects = Vec::new();
        let pod = |name: &str| format!("{{apiVersion: v1, kind: Pod, metadata: {{name: {name}}}}}");
        let list = format!("apiVersion: v1\nkind: List\nitems: [{}, {}]\n---\n{}", pod("a"), pod("b"), pod("c"));
        parse(&list, "x", &mut objects).unwrap();
        let names: Vec<_> = objects.iter().map(|file| file.object["metadata"]["name"].clone()).collect();
        assert_eq!(names, ["a", "b", "c"]);
        // A custom kind with a field `items` is not a list.
        parse("{apiVersion: a.b/v1, kind: Cart, metadata: {name: a}, items: [1]}", "x", &mut objects).unwrap();
        assert_eq!(objects[3].object["items"], serde_json::json!([1]));
    }

    #[test]
    fn documents_of_a_stream_are_all_read() {
        let mut objects = Vec::new();
        let object = "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n";
        parse(&format!("{object}---\n{object}"), "x", &mut objects).unwrap();
        assert_eq!(objects.len(), 2);
    }
}
