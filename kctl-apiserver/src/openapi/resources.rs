//! The paths and operations of each resource (`k8s.io/apiserver/pkg/endpoints/installer.go`).
//!
//! A resource has up to six paths, by namespace, name and the deprecated prefix `watch/`, and one
//! or two for each subresource. Verbs of discovery decide which operations exist.

use serde_json::{Value, json};

use super::{
    META,
    names::{self, capital},
    operations::{Body, FORMS, JSON, OK, OpenApiOperation, PROTOBUF, PathItem, YAML},
    parameters::{self, ParameterUse},
    types,
};
use crate::registry::{ApiResource, Resource};

/// Media types of lists and watches.
const WATCHED: &[&str] =
    &[JSON, YAML, PROTOBUF, "application/json;stream=watch", "application/vnd.kubernetes.protobuf;stream=watch"];
/// Media types of logs.
const LOGGED: &[&str] = &["text/plain", JSON, YAML, PROTOBUF];
/// Media types of proxies.
const ANY: &[&str] = &["*/*"];
/// Media types of custom resources, which have no protobuf.
const CUSTOM: &[&str] = &[JSON, YAML];
/// Media types of patches.
const PATCHES: &[&str] = &[
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
];
/// Media types of patches of custom resources, which have no strategic merge patch.
const CUSTOM_PATCHES: &[&str] =
    &["application/json-patch+json", "application/merge-patch+json", "application/apply-patch+yaml"];

/// All methods that a proxy forwards.
const PROXIED: &[&str] = &["delete", "get", "head", "options", "patch", "post", "put"];

/// Parameters of creates and updates.
const WRITTEN: &[&str] = &["dryRun", "fieldManager", "fieldValidation"];
/// Parameters of patches.
const PATCHED: &[&str] = &["dryRun", "fieldManager", "fieldValidation", "force"];
/// Parameters of deletes.
const DELETED: &[&str] = &[
    "dryRun",
    "gracePeriodSeconds",
    "ignoreStoreReadErrorWithClusterBreakingPotential",
    "orphanDependents",
    "propagationPolicy",
];
/// Parameters of lists.
const LISTED: &[&str] = &[
    "allowWatchBookmarks",
    "continue",
    "fieldSelector",
    "labelSelector",
    "limit",
    "resourceVersion",
    "resourceVersionMatch",
    "sendInitialEvents",
    "shardSelector",
    "timeoutSeconds",
    "watch",
];
/// Parameters of lists that deletes of collections lack.
const WATCH_ONLY: [&str; 2] = ["allowWatchBookmarks", "watch"];

/// Responses of an update.
const MAYBE_CREATED: &[(&str, &str)] = &[("200", "OK"), ("201", "Created")];
/// Responses of a delete.
const MAYBE_LATER: &[(&str, &str)] = &[("200", "OK"), ("202", "Accepted")];
/// Responses of a create.
const ALL: &[(&str, &str)] = &[("200", "OK"), ("201", "Created"), ("202", "Accepted")];

/// The objects of a resource that a path names.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PathScope {
    /// One object.
    Object,
    /// The objects of one namespace, or all objects of a cluster-scoped resource.
    Collection,
    /// The objects of all namespaces.
    AllNamespaces,
}

/// Returns all paths of a resource and its subresources.
///
/// Paths without an operation are left out.
pub(super) fn paths(resource: &Resource) -> Vec<PathItem> {
    let root = super::root(&resource.id.group, &resource.version);
    let mut paths = Vec::new();
    let whole = |scope| Writer::new(resource, &root, &resource.listed, scope);
    let (single, all) = (whole(PathScope::Object), whole(PathScope::Collection));
    let pick = |verb: &str, operation: OpenApiOperation| resource.allows("", verb).then_some(operation);
    paths.push(all.path(
        "",
        [pick("list", all.list()), pick("create", all.create()), pick("deletecollection", all.delete_collection())],
    ));
    let single_operations = [
        pick("get", single.read()),
        pick("update", single.replace()),
        pick("delete", single.delete()),
        pick("patch", single.patch()),
    ];
    paths.push(single.path("", single_operations));
    let everywhere = whole(PathScope::AllNamespaces);
    let is_namespaced = resource.listed.namespaced;
    if is_namespaced {
        paths.push(everywhere.path("", [pick("list", everywhere.list())]));
    }
    if resource.custom.is_none() {
        paths.push(all.path("watch/", [pick("watch", all.watch())]));
        paths.push(single.path("watch/", [pick("watch", single.watch())]));
        if is_namespaced {
            paths.push(everywhere.path("watch/", [pick("watch", everywhere.watch())]));
        }
    }
    for sub in &resource.subresources {
        paths.extend(Writer::new(resource, &root, sub, PathScope::Object).paths_of_subresource(sub));
    }
    paths.retain(|path| !path.operations.is_empty());
    paths
}

/// Describes the operations of a resource or a subresource.
struct Writer<'a> {
    /// The resource, also for subresources: their paths start with it.
    resource: &'a Resource,
    /// The path of the group and version, such as `apis/apps/v1`.
    root: &'a str,
    /// The name of the subresource; empty for the resource itself.
    sub: &'a str,
    /// The name of the type of bodies and responses.
    type_name: String,
    /// `x-kubernetes-group-version-kind`.
    kind: Value,
    /// The kind in the description of the parameter `name`.
    named: String,
    /// `true` for the paths below a namespace.
    in_namespace: bool,
    /// `true` for the paths of one object.
    has_name: bool,
}

impl<'a> Writer<'a> {
    /// Creates the description of a resource or subresource, whose entry of discovery is `listed`, for the paths of one
    /// scope.
    fn new(resource: &'a Resource, root: &'a str, listed: &'a ApiResource, scope: PathScope) -> Self {
        let group = listed.group.as_ref().unwrap_or(&resource.id.group);
        let version = listed.version.as_ref().unwrap_or(&resource.version);
        let type_name = types::name_of(resource, group, version, &listed.kind);
        // Upstream describes subresources of custom kinds as if they were the object.
        let own = resource.custom.is_some();
        let (group, version) = if own { (&resource.id.group, &resource.version) } else { (group, version) };
        let named = if own { resource.kind_name() } else { &listed.kind }.to_owned();
        let kind = json!({ "group": group, "version": version, "kind": named });
        let sub = listed.name.split_once('/').map_or("", |(_, sub)| sub);
        let (is_namespaced, has_name) = (resource.listed.namespaced, scope == PathScope::Object);
        let in_namespace = is_namespaced && scope != PathScope::AllNamespaces;
        Self { resource, root, sub, type_name, kind, named, in_namespace, has_name }
    }

    /// Returns the path with its operations; absent ones are left out. `prefix` is `watch/` for the deprecated watch
    /// paths.
    fn path<const N: usize>(&self, prefix: &str, operations: [Option<OpenApiOperation>; N]) -> PathItem {
        let namespace = if self.in_namespace { "namespaces/{namespace}/" } else { "" };
        let name = if self.has_name { "/{name}" } else { "" };
        let slash = if self.sub.is_empty() { "" } else { "/" };
        let (root, plural, sub) = (self.root, &self.resource.id.resource, self.sub);
        let path = format!("/{root}/{prefix}{namespace}{plural}{name}{slash}{sub}");
        PathItem::new(path, operations.into_iter().flatten().collect())
    }

    /// Returns the paths of a subresource. Types that end with `Options` mark connections, which have no verbs of
    /// objects. A proxy has a second path with the rest of the URL.
    fn paths_of_subresource(&self, sub: &ApiResource) -> Vec<PathItem> {
        if self.type_name.ends_with("Options") {
            let is_proxy = self.sub == "proxy";
            let methods: &[_] = if is_proxy { PROXIED } else { &["get", "post"] };
            let first = self.path("", []).path;
            let connects = methods.iter().map(|method| self.connect(method)).collect();
            let mut paths = vec![PathItem::new(first.clone(), connects)];
            if is_proxy {
                let with_path = methods.iter().map(|method| self.connect_with_path(method)).collect();
                paths.push(PathItem::new(format!("{first}/{{path}}"), with_path));
            }
            return paths;
        }
        let pick = |verb: &str, operation: OpenApiOperation| {
            sub.verbs.iter().any(|allowed| allowed == verb).then_some(operation)
        };
        let operations = [
            pick("create", self.create()),
            pick("get", self.read()),
            pick("update", self.replace()),
            pick("patch", self.patch()),
        ];
        vec![self.path("", operations)]
    }

    /// Returns `true` for a resource of a CRD, whose operations upstream describes in less detail.
    fn is_custom(&self) -> bool {
        self.resource.custom.is_some()
    }

    /// Returns an operation without parameters. `verb` is part of the id, `action` the extension; they differ for lists
    /// and connections.
    fn operation(
        &self,
        method: &'static str,
        verb: &str,
        action: &'static str,
        description: String,
    ) -> OpenApiOperation {
        let collection = if action == "deletecollection" { "Collection" } else { "" };
        let namespaced = if self.in_namespace { "Namespaced" } else { "" };
        let rest = format!("{collection}{namespaced}{}{}", self.resource.kind_name(), capital(self.sub));
        let everywhere = self.resource.listed.namespaced && !self.in_namespace;
        let list = if action == "watchlist" { "List" } else { "" };
        let rest = format!("{rest}{list}{}", if everywhere { "ForAllNamespaces" } else { "" });
        OpenApiOperation {
            method,
            id: names::operation(self.root, verb, &rest),
            tag: names::tag(self.root),
            description,
            action: Some(action),
            kind: Some(self.kind.clone()),
            consumes: if self.is_custom() { CUSTOM } else { ANY },
            produces: if self.is_custom() { CUSTOM } else { FORMS },
            body: None,
            responses: OK,
            response_type: Some(self.type_name.clone()),
            parameters: self.parameters(&[], method),
        }
    }

    /// Returns these parameters and the path parameters. `pretty` is a parameter of every operation, and `method`
    /// selects its variant.
    fn parameters(&self, names: &[&str], method: &str) -> Vec<ParameterUse> {
        let own = names.iter().chain(self.in_namespace.then_some(&"namespace")).chain(["pretty"].iter());
        let mut all: Vec<ParameterUse> =
            own.filter_map(|name| parameters::find(name, method)).map(ParameterUse::Known).collect();
        all.extend(self.has_name.then(|| ParameterUse::Name(self.named.clone())));
        all
    }

    /// Returns the required body of a create or an update.
    fn body(&self) -> Body {
        Body { type_name: self.type_name.clone(), is_required: true, shared: None }
    }

    /// Returns the object of a description: `the specified Pod`, or `status of the specified Pod`.
    fn object_phrase(&self) -> String {
        let prefix = if self.sub.is_empty() { String::new() } else { format!("{} of ", self.sub) };
        format!("{prefix}the specified {}", self.resource.kind_name())
    }

    /// Describes `get` of one object. Logs are plain text and have further parameters, such as `tailLines`.
    fn read(&self) -> OpenApiOperation {
        let mut operation = self.operation("get", "read", "get", format!("read {}", self.object_phrase()));
        if self.is_custom() {
            operation.parameters = self.parameters(&["resourceVersion"], "get");
        }
        if self.sub == "log" {
            (operation.produces, operation.response_type) = (LOGGED, None);
            operation.parameters.extend(parameters::subresource_parameters("pods/log").map(ParameterUse::Known));
        }
        operation
    }

    /// Describes `put`, which may create the object.
    fn replace(&self) -> OpenApiOperation {
        let operation = self.operation("put", "replace", "put", format!("replace {}", self.object_phrase()));
        let parameters = self.parameters(WRITTEN, "put");
        OpenApiOperation { body: Some(self.body()), responses: MAYBE_CREATED, parameters, ..operation }
    }

    /// Describes `patch`. Custom resources do not accept strategic merge patches, and do not document 201.
    fn patch(&self) -> OpenApiOperation {
        let operation = self.operation("patch", "patch", "patch", format!("partially update {}", self.object_phrase()));
        let type_name = format!("{META}.Patch");
        OpenApiOperation {
            body: Some(Body { type_name, is_required: true, shared: Some("patch") }),
            consumes: if self.is_custom() { CUSTOM_PATCHES } else { PATCHES },
            responses: if self.is_custom() { OK } else { MAYBE_CREATED },
            parameters: self.parameters(PATCHED, "patch"),
            ..operation
        }
    }

    /// Describes `post`.
    fn create(&self) -> OpenApiOperation {
        let kind = names::with_article(self.resource.kind_name());
        let prefix = if self.sub.is_empty() { String::new() } else { format!("{} of ", self.sub) };
        let operation = self.operation("post", "create", "post", format!("create {prefix}{kind}"));
        OpenApiOperation {
            body: Some(self.body()),
            responses: ALL,
            parameters: self.parameters(WRITTEN, "post"),
            ..operation
        }
    }

    /// Describes `delete` of one object. The response is a `Status`, or the object for some kinds.
    fn delete(&self) -> OpenApiOperation {
        let what = format!("delete {}", names::with_article(self.resource.kind_name()));
        let operation = self.operation("delete", "delete", "delete", what);
        let is_shown = self.resource.kind.returns_deleted_object();
        OpenApiOperation {
            body: Some(deletion()),
            responses: MAYBE_LATER,
            response_type: Some(if is_shown { self.type_name.clone() } else { format!("{META}.Status") }),
            parameters: self.parameters(DELETED, "delete"),
            ..operation
        }
    }

    /// Describes `delete` of a collection. Custom resources have the parameters of a list, and no body.
    fn delete_collection(&self) -> OpenApiOperation {
        let what = format!("delete collection of {}", self.resource.kind_name());
        let operation = self.operation("delete", "delete", "deletecollection", what);
        let mut names = LISTED.to_vec();
        if !self.is_custom() {
            names.retain(|name| !WATCH_ONLY.contains(name));
            names.extend(DELETED);
        }
        OpenApiOperation {
            body: (!self.is_custom()).then(deletion),
            response_type: Some(format!("{META}.Status")),
            parameters: self.parameters(&names, "delete"),
            ..operation
        }
    }

    /// Describes `get` of a collection.
    fn list(&self) -> OpenApiOperation {
        let kind = self.resource.kind_name();
        let or_watch = if !self.is_custom() && self.resource.allows("", "watch") { " or watch" } else { "" };
        let operation = self.operation("get", "list", "list", format!("list{or_watch} objects of kind {kind}"));
        OpenApiOperation {
            produces: if self.is_custom() { CUSTOM } else { WATCHED },
            response_type: Some(types::list_of(self.resource)),
            parameters: self.parameters(LISTED, "get"),
            ..operation
        }
    }

    /// Describes the deprecated paths `/watch/…` of one object or a collection.
    fn watch(&self) -> OpenApiOperation {
        let kind = self.resource.kind_name();
        let instead = "deprecated: use the 'watch' parameter with a list operation instead";
        let (action, what) = if self.has_name {
            let hint = "filtered to a single item with the 'fieldSelector' parameter";
            ("watch", format!("watch changes to an object of kind {kind}. {instead}, {hint}."))
        } else {
            ("watchlist", format!("watch individual changes to a list of {kind}. {instead}."))
        };
        let operation = self.operation("get", "watch", action, what);
        OpenApiOperation {
            produces: WATCHED,
            response_type: Some(format!("{META}.WatchEvent")),
            parameters: self.parameters(LISTED, "get"),
            ..operation
        }
    }

    /// Returns an operation that leads to a process or an endpoint. Its id has the method in front of the namespace
    /// part.
    fn connect(&self, method: &'static str) -> OpenApiOperation {
        let what =
            format!("connect {} requests to {} of {}", method.to_uppercase(), self.sub, self.resource.kind_name());
        let mut operation = self.operation(method, "connect", "connect", what);
        let namespaced = if self.in_namespace { "Namespaced" } else { "" };
        let (kind, sub) = (self.resource.kind_name(), capital(self.sub));
        let prefix = names::operation(self.root, "connect", "");
        operation.id = format!("{prefix}{}{namespaced}{kind}{sub}", capital(method));
        (operation.consumes, operation.produces, operation.response_type) = (ANY, ANY, None);
        operation.parameters.retain(|parameter| parameter.name() != "pretty");
        let subresource = format!("{}/{}", self.resource.id.resource, self.sub);
        operation.parameters.extend(parameters::subresource_parameters(&subresource).map(ParameterUse::Known));
        operation
    }

    /// Returns the operation of a proxy on the rest of the URL, which is a parameter.
    fn connect_with_path(&self, method: &'static str) -> OpenApiOperation {
        let mut operation = self.connect(method);
        operation.id.push_str("WithPath");
        operation.parameters.extend(parameters::find("path", "").map(ParameterUse::Known));
        operation
    }
}

/// Returns the body of a delete, to which all deletes refer in version 2.
fn deletion() -> Body {
    Body { type_name: format!("{META}.DeleteOptions"), is_required: false, shared: Some("delete") }
}
