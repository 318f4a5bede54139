//! Operations of one path, independent of the version of the document. The operations of discovery are here.

use serde_json::Value;

use super::{META, names, parameters::ParameterUse, types};

/// Media type of all operations.
pub(super) const JSON: &str = "application/json";
/// Media type of all operations but `/version`.
pub(super) const YAML: &str = "application/yaml";
/// The media type of built-in kinds in protobuf; custom resources lack it.
pub(super) const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
/// The path of the `OpenID` configuration.
pub(super) const ISSUER: &str = ".well-known/openid-configuration";
/// The path of the `OpenID` signing keys.
pub(super) const KEYS: &str = "openid/v1/jwks";
/// The media types of built-in kinds.
pub(super) const FORMS: &[&str] = &[JSON, YAML, PROTOBUF];
/// The body of a request.
pub(super) struct Body {
    /// The type of the body.
    pub(super) type_name: String,
    /// `false` for the options of a delete.
    pub(super) is_required: bool,
    /// The name of a shared parameter: version 2 refers to bodies of one type by a name.
    pub(super) shared: Option<&'static str>,
}

/// The responses of an operation that only succeeds with 200.
pub(super) const OK: &[(&str, &str)] = &[("200", "OK")];

/// One method of a path (Operation Object).
pub(super) struct OpenApiOperation {
    /// The HTTP method in lowercase.
    pub(super) method: &'static str,
    /// `operationId`, which client generators name methods after.
    pub(super) id: String,
    /// The tag that groups the operations of one API version.
    pub(super) tag: String,
    /// A sentence without a full stop, as upstream.
    pub(super) description: String,
    /// `x-kubernetes-action`.
    pub(super) action: Option<&'static str>,
    /// `x-kubernetes-group-version-kind`.
    pub(super) kind: Option<Value>,
    /// Media types of the request body.
    pub(super) consumes: &'static [&'static str],
    /// Media types of the response.
    pub(super) produces: &'static [&'static str],
    /// `None` for reads.
    pub(super) body: Option<Body>,
    /// Codes with their descriptions.
    pub(super) responses: &'static [(&'static str, &'static str)],
    /// The type of the response; `None` for a string.
    pub(super) response_type: Option<String>,
    /// The parameters, including path parameters until `PathItem::new` moves them.
    pub(super) parameters: Vec<ParameterUse>,
}

/// One path (Path Item Object).
pub(super) struct PathItem {
    /// The path template.
    pub(super) path: String,
    /// The operations of the path, one per method.
    pub(super) operations: Vec<OpenApiOperation>,
    /// Parameters of all operations.
    pub(super) parameters: Vec<ParameterUse>,
}

impl PathItem {
    /// Creates a path. Parameters that all operations share are moved to it.
    pub(super) fn new(path: String, mut operations: Vec<OpenApiOperation>) -> Self {
        let mut parameters = operations.first().map_or_else(Vec::new, |first| first.parameters.clone());
        parameters.retain(|candidate| operations.iter().all(|operation| operation.parameters.contains(candidate)));
        for operation in &mut operations {
            operation.parameters.retain(|candidate| !parameters.contains(candidate));
        }
        parameters.sort_by(|candidate, other| candidate.order().cmp(&other.order()));
        Self { path, operations, parameters }
    }
}

/// Returns the discovery path of a group or a version.
///
/// `root` has no slashes at its ends; the path in the document ends with one.
pub(super) fn discovery(root: &str) -> PathItem {
    let parts = root.split('/').count();
    let (rest, description, kind) = match (root, parts) {
        ("api", _) => ("APIVersions", "get available API versions", "APIVersions"),
        ("apis", _) => ("APIVersions", "get available API versions", "APIGroupList"),
        (root, 2) if root.starts_with("apis/") => ("APIGroup", "get information of a group", "APIGroup"),
        _ => ("APIResources", "get available resources", "APIResourceList"),
    };
    let response_type = format!("{META}.{kind}");
    let operation = read_operation(root, names::operation(root, "get", rest), description, FORMS, response_type);
    PathItem::new(format!("/{root}/"), vec![operation])
}

/// Returns the path `/version`.
pub(super) fn version() -> PathItem {
    let (description, response_type) = ("get the version information for this server", types::VERSION.to_owned());
    let operation = read_operation("version", "getCodeVersion".into(), description, &[JSON], response_type);
    PathItem::new("/version/".into(), vec![operation])
}

/// Returns the paths that clients use to verify tokens: the issuer and its keys.
///
/// Their responses are strings in the document.
pub(super) fn token_paths() -> [PathItem; 2] {
    let text = |root: &str, tag: &str, id: &str, what: &str, forms| {
        let plain = read_operation(root, id.into(), what, forms, String::new());
        let operation = OpenApiOperation { tag: tag.into(), consumes: &[], response_type: None, ..plain };
        PathItem::new(format!("/{root}/"), vec![operation])
    };
    let issuer = "get service account issuer OpenID configuration, also known as the 'OIDC discovery doc'";
    let keys = "get service account issuer OpenID JSON Web Key Set (contains public token verification keys)";
    [
        text(ISSUER, "WellKnown", "getServiceAccountIssuerOpenIDConfiguration", issuer, &[JSON]),
        text(KEYS, "openid", "getServiceAccountIssuerOpenIDKeyset", keys, &["application/jwk-set+json"]),
    ]
}

/// Returns a read without parameters.
fn read_operation(
    root: &str,
    id: String,
    what: &str,
    forms: &'static [&'static str],
    response_type: String,
) -> OpenApiOperation {
    OpenApiOperation {
        method: "get",
        id,
        tag: names::tag(root),
        description: what.into(),
        action: None,
        kind: None,
        consumes: forms,
        produces: forms,
        body: None,
        responses: OK,
        response_type: Some(response_type),
        parameters: Vec::new(),
    }
}
