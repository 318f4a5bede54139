//! `CustomResourceDefinitions`: the output of kube's derive, completed, joined with other versions, and checked.
//!
//! The stages are, each in a file:
//!
//! 1. [`variants`] checks the schema for what kube's derive would panic about.
//! 2. The derive generates a CRD of one version.
//! 3. [`descriptions`] removes documentation, [`merging`] adds list types, [`values`] bounds and formats,
//!    [`union`] joins enums, and markers of the whole object are applied.
//! 4. [`join`] combines the versions of one kind.
//! 5. [`check()`] reports what an API server would reject, in terms of Rust types and fields.

mod bounds;
#[cfg(feature = "rules")]
mod cel;
mod check;
mod compat;
mod defaults;
mod flattened;
mod formats;
mod join;
mod merging;
mod names;
mod numbers;
mod owner;
mod paths;
mod problem;
mod structural;
mod structure;
mod union;
mod values;
mod variants;

use std::collections::HashSet;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    CustomResourceExt,
    core::{ApiResource, GroupVersionKind},
};
use schemars::JsonSchema;
use serde_json::{Value, json};

pub use check::{Checked, check};
pub use compat::{Change, breaking};
pub use flattened::Flattened;
pub use problem::{DefinitionError, Problem};
pub use structure::Structure;

use super::{Descriptions, Manifest, descriptions};
use crate::{
    markers::{ROOT, rules_of},
    panic::panic_text,
    spec::{ControllerSpec, RelationSpec},
};

/// Beginning of the description that kube's derive generates.
const DERIVED: &str = "Auto-generated derived type for";

/// Maximum size of the client-side apply annotation, in bytes (`TotalAnnotationSizeLimitB` of apimachinery).
///
/// `kubectl apply` without `--server-side` fails for a larger CRD.
pub const APPLY_BYTES_MAX: usize = 262_144;

/// A kind, or one version of it, from which a CRD is generated.
///
/// `App::kinds` of the crate `kctl` returns the kinds of a program.
#[derive(Clone)]
#[non_exhaustive]
pub struct KindSpec {
    /// Place of the declaration, for messages.
    pub location: String,
    /// Group, version and kind, known without generating the CRD, which takes milliseconds for a Pod template.
    pub kind: GroupVersionKind,
    /// Returns the CRD of kube's derive.
    pub crd: fn() -> CustomResourceDefinition,
    /// Returns the JSON schema with references, if the type has one. It names the user's types.
    pub schema: Option<fn() -> Value>,
}

impl std::fmt::Debug for KindSpec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KindSpec").field("location", &self.location).field("kind", &self.kind).finish_non_exhaustive()
    }
}

impl KindSpec {
    /// Creates a kind whose CRD `crd` returns, without a schema of the Rust type. `location` is the place of its declaration,
    /// for messages.
    ///
    /// Use [`KindSpec::of`] for a Rust type.
    pub fn new(location: impl Into<String>, kind: GroupVersionKind, crd: fn() -> CustomResourceDefinition) -> Self {
        Self { location: location.into(), kind, crd, schema: None }
    }

    /// Sets the function that returns the JSON schema with references.
    #[must_use]
    pub fn with_schema(self, schema: Option<fn() -> Value>) -> Self {
        Self { schema, ..self }
    }

    /// Returns the kind that a controller reconciles, or `None` if it is not a custom resource.
    pub fn from_spec(spec: &ControllerSpec) -> Option<Self> {
        let crate::object::Kind { group, version, kind, .. } = &spec.primary.kind;
        let kind = GroupVersionKind::gvk(group, version, kind);
        Some(Self { location: spec.location.clone(), kind, crd: spec.crd?, schema: spec.schema })
    }

    /// Returns the kind of a relation, or `None` if its type has no CRD.
    pub fn from_relation(spec: &ControllerSpec, relation: &RelationSpec) -> Option<Self> {
        let crate::object::Kind { group, version, kind, .. } = &relation.kind;
        let kind = GroupVersionKind::gvk(group, version, kind);
        let location = format!("{}: {}", spec.location, relation.text);
        Some(Self { location, kind, crd: relation.crd?, schema: relation.schema })
    }

    /// Returns the kind of a Rust type.
    pub fn of<K: CustomResourceExt + JsonSchema>() -> Self {
        let ApiResource { group, version, kind, .. } = K::api_resource();
        let kind = GroupVersionKind::gvk(&group, &version, &kind);
        Self { location: std::any::type_name::<K>().into(), kind, crd: K::crd, schema: Some(schema_of::<K>) }
    }
}

/// Returns the schema of a type with references. Not inlined, so that types keep their names.
pub(crate) fn schema_of<K: JsonSchema>() -> Value {
    schemars::SchemaGenerator::default().into_root_schema_for::<K>().to_value()
}

/// One version of a kind, after the derive and the markers.
pub(super) struct Version {
    pub(super) location: String,
    pub(super) crd: CustomResourceDefinition,
    /// Schema with references; null if the type has none.
    pub(super) schema: Value,
}

impl Version {
    /// Returns the name of the version, such as `v1`.
    pub(super) fn name(&self) -> &str {
        self.crd.spec.versions.first().map_or("", |version| &version.name)
    }
}

/// Returns the CRDs of all custom resources that the controllers reconcile, sorted by name.
///
/// # Errors
/// [`DefinitionError`] if an API server would reject a CRD, or no object could be valid.
pub fn crds(
    specs: &[ControllerSpec],
    descriptions: Descriptions,
) -> Result<Vec<CustomResourceDefinition>, DefinitionError> {
    definitions(&specs.iter().filter_map(KindSpec::from_spec).collect::<Vec<_>>(), descriptions)
}

/// Returns the CRDs of kinds, sorted by name. Kinds of one name become versions of one CRD.
///
/// ```
/// use kctl_runtime::manifest::{Descriptions, KindSpec, definitions};
/// use kube::CustomResource;
/// use schemars::JsonSchema;
/// use serde::{Deserialize, Serialize};
///
/// #[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
/// #[kube(group = "example.com", version = "v1", kind = "Web", namespaced)]
/// struct WebSpec {
///     replicas: u8,
/// }
///
/// let crds = definitions(&[KindSpec::of::<Web>()], Descriptions::Own)?;
/// assert_eq!(crds[0].metadata.name.as_deref(), Some("webs.example.com"));
///
/// // The API server accepts exactly the values that fit the Rust type.
/// let schema = serde_json::to_value(&crds[0].spec.versions[0].schema)?;
/// assert_eq!(schema["openAPIV3Schema"]["properties"]["spec"]["properties"]["replicas"]["maximum"], 255.0);
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// As [`crds`]; also if two versions do not fit together.
pub fn definitions(
    kinds: &[KindSpec],
    descriptions: Descriptions,
) -> Result<Vec<CustomResourceDefinition>, DefinitionError> {
    let mut versions: Vec<Version> = Vec::new();
    // Several controllers and functions may use one type. Its schema is derived once.
    let mut types = HashSet::new();
    for kind in kinds.iter().filter(|kind| types.insert((kind.crd, kind.schema))) {
        let version = version(kind, descriptions)?;
        let is_same = |existing: &&Version| {
            existing.crd.metadata.name == version.crd.metadata.name && existing.name() == version.name()
        };
        match versions.iter().find(is_same) {
            // Several controllers may declare one kind with equal CRDs.
            Some(existing) if existing.crd == version.crd => {}
            Some(existing) => return Err(duplicate_version(existing, &version)),
            None => versions.push(version),
        }
    }
    let mut crds = Vec::new();
    let named = join::by_name(versions);
    join::check_plurals(&named)?;
    for versions in named {
        let crd = join::join(&versions)?;
        let checked = check(&json!(crd));
        if !checked.has_no_problems() {
            return Err(problem::definition_error(&versions, checked));
        }
        crds.push(crd);
    }
    Ok(crds)
}

/// Returns the error for two types that claim the same version of a kind.
fn duplicate_version(first: &Version, second: &Version) -> DefinitionError {
    let names = [first, second].map(|version| &version.crd.spec.names);
    let help = if names[0].kind == names[1].kind {
        "use one type in both places, or give one of them another `version`".to_owned()
    } else {
        let kinds = format!("the kinds {} and {}", names[0].kind, names[1].kind);
        format!("{kinds} share the plural `{}`: give one of them another `plural`", names[0].plural)
    };
    DefinitionError::Versions {
        name: first.crd.metadata.name.clone().unwrap_or_default(),
        what: format!(
            "two different types have the version {} ({} and {})",
            first.name(),
            first.location,
            second.location
        ),
        help,
    }
}

/// Generates the CRD of one version and completes it.
///
/// A panic of kube's derive becomes an error: it panics for schemas that Kubernetes cannot express.
fn version(kind: &KindSpec, descriptions: Descriptions) -> Result<Version, DefinitionError> {
    let schema = kind.schema.map_or(Value::Null, |schema| schema());
    let problems = variants::check(&schema);
    if !problems.is_empty() {
        let title = schema["title"].as_str().unwrap_or_default();
        return Err(DefinitionError::Rejected { kind: title.into(), location: kind.location.clone(), problems });
    }
    // kube's derive panics for a schema that is not structural. The known reasons were reported above.
    let made = std::panic::catch_unwind(kind.crd);
    let mut crd =
        made.map_err(|panic| DefinitionError::Derive { location: kind.location.clone(), cause: panic_text(&*panic) })?;
    if descriptions == Descriptions::Own {
        descriptions::strip_built_in(&mut crd, &schema);
    }
    describe_whole(&mut crd);
    merging::complete(&mut crd, &schema);
    let formats = (schema[structure::COMPLETED] != true).then_some(values::Formats::Unknown);
    complete_values(&mut crd, formats);
    let mut version = Version { location: kind.location.clone(), crd, schema };
    apply_root_markers(&mut version);
    Ok(version)
}

/// Unwraps unions, and adds bounds, formats and null to kinds that were not declared with `#[resource]`: those have `formats`.
///
/// A schema that cannot be read back is left alone, and the check reports it.
fn complete_values(crd: &mut CustomResourceDefinition, formats: Option<values::Formats>) {
    let schemas = crd.spec.versions.iter_mut().filter_map(|version| version.schema.as_mut());
    for schema in schemas.filter_map(|schema| schema.open_api_v3_schema.as_mut()) {
        let mut value = json!(schema);
        if let Some(formats) = formats {
            values::complete(&mut value, formats);
        }
        union::unwrap(&mut value);
        if let Ok(completed) = serde_json::from_value(value) {
            *schema = completed;
        }
    }
}

/// Replaces the description that the derive generates by the doc comment of the spec's struct, with which
/// `kubectl explain` begins.
fn describe_whole(crd: &mut CustomResourceDefinition) {
    let schemas = crd.spec.versions.iter_mut().filter_map(|version| version.schema.as_mut());
    for schema in schemas.filter_map(|schema| schema.open_api_v3_schema.as_mut()) {
        if schema.description.as_deref().is_some_and(|text| text.trim_start().starts_with(DERIVED)) {
            let spec = schema.properties.as_ref().and_then(|properties| properties.get("spec"));
            schema.description = spec.and_then(|spec| spec.description.clone());
        }
        schema.title.take_if(|title| *title == crd.spec.names.kind);
    }
}

/// Applies the markers of `#[resource(…)]` that are about the whole object: conversion, subresources and rules.
fn apply_root_markers(version: &mut Version) {
    let spec = owner::resolve(&version.schema, &version.schema["properties"]["spec"]);
    let markers = spec.get(ROOT).or_else(|| version.schema.get(ROOT)).cloned().unwrap_or_default();
    let Value::Object(markers) = markers else { return };
    let spec = &mut version.crd.spec;
    if let Some(conversion) = markers.get("conversion") {
        let conversion = serde_json::from_value(conversion_of(conversion));
        spec.conversion = Some(conversion.expect("`#[resource]` checks the types of the options of `conversion`"));
    }
    let Some(version) = spec.versions.first_mut() else { return };
    if markers.get("status_subresource") == Some(&Value::Bool(false))
        && let Some(subresources) = &mut version.subresources
    {
        subresources.status = None;
        if subresources.scale.is_none() {
            version.subresources = None;
        }
    }
    let rules = rules_of(&markers);
    if let Some(schema) = version.schema.as_mut().and_then(|schema| schema.open_api_v3_schema.as_mut()) {
        let rule =
            |rule| serde_json::from_value(rule).expect("`#[resource]` checks the types of the options of `rule`");
        let more = rules.into_iter().map(rule);
        let rules: Vec<_> = schema.x_kubernetes_validations.take().into_iter().flatten().chain(more).collect();
        schema.x_kubernetes_validations = (!rules.is_empty()).then_some(rules);
    }
}

/// Returns `spec.conversion` for a webhook, from a service or a URL.
fn conversion_of(markers: &Value) -> Value {
    let client = if let Some(url) = markers.get("url") {
        json!({ "url": url })
    } else {
        let mut service =
            json!({ "name": markers["service"], "namespace": markers["namespace"], "path": markers["path"] });
        if let Some(port) = markers.get("port") {
            service["port"] = port.clone();
        }
        json!({ "service": service })
    };
    json!({ "strategy": "Webhook", "webhook": { "clientConfig": client, "conversionReviewVersions": ["v1"] } })
}

/// Returns the CRDs as files, `crds/PLURAL.GROUP.yaml`.
///
/// # Errors
/// A CRD cannot be generated, or cannot be written as YAML.
pub fn crd_manifests(
    kinds: &[KindSpec],
    descriptions: Descriptions,
) -> Result<Vec<Manifest>, Box<dyn std::error::Error + Send + Sync>> {
    let file = |crd: &CustomResourceDefinition| format!("crds/{}.{}.yaml", crd.spec.names.plural, crd.spec.group);
    let crds = definitions(kinds, descriptions)?;
    let mut manifests = Vec::new();
    for crd in &crds {
        let mut object = serde_json::to_value(crd)?;
        numbers::shorten(&mut object);
        manifests.push(Manifest::new(file(crd), object)?);
    }
    Ok(manifests)
}
