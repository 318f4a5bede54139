//! The table of all types with their declared rules, computed from the schemas and tags.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::LazyLock,
};

use super::tags::{FieldTags, Tagged};
use crate::schema::Schema;

/// The prefix of type names in the `OpenAPI` document. Tables here leave it out.
pub(super) const PACKAGE: &str = "io.k8s.api.";
/// Fields with an enum or a tag whose validation is a function of the kind. Functions take the values from [`values`].
///
/// Pairs of type and fields. Each entry has its reason. The error has another path, type or set of values than the
/// generic rule would produce, or the field is not validated at all. Leaving a field out removes all its tags, and its
/// inner type is not visited through this field.
pub(super) const BY_FUNCTION: &[(&str, &[&str])] = &[
    // Version 1 rejects `Some` and `Unknown`, which the document lists for older versions.
    ("admissionregistration.v1.MutatingWebhook", &["sideEffects"]),
    ("admissionregistration.v1.ValidatingWebhook", &["sideEffects"]),
    // The error is at the whole strategy.
    ("apps.v1.DaemonSetUpdateStrategy", &["type"]),
    ("apps.v1.DeploymentStrategy", &["type"]),
    ("apps.v1.StatefulSetUpdateStrategy", &["type"]),
    // The error is `FieldValueInvalid`.
    ("apps.v1.StatefulSetSpec", &["podManagementPolicy"]),
    ("core.v1.NodeSelectorRequirement", &["operator"]),
    ("core.v1.ResourceQuotaSpec", &["scopes"]),
    ("core.v1.ScopedResourceSelectorRequirement", &["operator", "scopeName"]),
    // The error is at the list.
    ("core.v1.PersistentVolumeClaimSpec", &["accessModes"]),
    ("core.v1.PersistentVolumeSpec", &["accessModes"]),
    // The error is at the list, without the index of the mount.
    ("core.v1.VolumeMount", &["mountPropagation"]),
    // The error is at `metadata.taints`.
    ("core.v1.Taint", &["effect"]),
    // `Gt` and `Lt` need the feature gate `TaintTolerationComparisonOperators`.
    ("core.v1.Toleration", &["operator"]),
    // Dropped without the feature gate `ContainerStopSignals`, after the enums are validated.
    ("core.v1.Lifecycle", &["stopSignal"]),
    // Not validated for an `ExternalName`, and otherwise before addresses are allocated. The empty family is in the
    // document but rejected.
    ("core.v1.ServiceSpec", &["ipFamilies", "ipFamilyPolicy"]),
    // The empty string is `FieldValueNotSupported`, though the field is required.
    ("core.v1.TopologySpreadConstraint", &["whenUnsatisfiable"]),
    ("networking.v1.HTTPIngressPath", &["pathType"]),
    // An update only validates that the field is unchanged.
    ("scheduling.v1.PriorityClass", &["preemptionPolicy"]),
    // Most fields of an inline volume are forbidden, not validated.
    ("storage.v1.VolumeAttachmentSource", &["inlineVolumeSpec"]),
    // The reference is validated only in `spec.metrics`.
    ("autoscaling.v2.ObjectMetricStatus", &["describedObject"]),
];

/// Optional enums whose empty string is not compared with the values, as pairs of type and field. In other optional
/// enums, which are pointers in Go, an empty string is an unsupported value.
pub(super) const UNSET_WHEN_EMPTY: &[(&str, &str)] = &[
    // The function of the kind reports the empty string as `FieldValueRequired`. The second field is a pointer.
    ("admissionregistration.v1.MutatingAdmissionPolicySpec", "reinvocationPolicy"),
    ("core.v1.PodSpec", "preemptionPolicy"),
    // Strings in Go, not pointers: an empty one is an absent one.
    ("core.v1.ServiceSpec", "externalTrafficPolicy"),
    ("core.v1.Toleration", "effect"),
    // A pointer, but `validateReclaimPolicy` accepts the empty string.
    ("storage.v1.StorageClass", "reclaimPolicy"),
];

/// The fields of a type that have rules, or whose types have.
#[derive(Default)]
pub(super) struct Type {
    /// In the order of the `OpenAPI` document. Fields that cannot fail are left out.
    pub(super) fields: Vec<Field>,
}

/// One field of a type: its rules, and the type that its value has.
pub(super) struct Field {
    /// The JSON name.
    pub(super) name: &'static str,
    /// Default for a field that only leads to a type with rules.
    pub(super) rule: FieldTags,
    /// One value, a list or a map; determines the paths of the inner values.
    pub(super) shape: Cardinality,
    /// The type of the field, or of its items or values.
    pub(super) inner: Option<&'static str>,
}

/// The shape of a field, which determines how the walk enters it.
#[derive(Clone, Copy)]
pub(super) enum Cardinality {
    /// A single value; its path is the path of the field.
    One,
    /// A list; items have an index in their path: `[0]`.
    List,
    /// A map with free keys; values have the key in their path: `[key]`.
    Map,
}

/// The rules of all types, by full name. Built at first use.
///
/// The second half is a fixed point. A type is kept if one of its fields has a rule or leads to a type that is kept.
/// Types can contain themselves (JSON schemas of CRDs do), so a plain recursion would not end. Each round can only add
/// types, so the loop ends after at most as many rounds as there are types.
pub(super) static TYPES: LazyLock<HashMap<&'static str, Type>> = LazyLock::new(|| {
    let tagged: Vec<Tagged> =
        serde_json::from_str(include_str!("../../../data/validation.json")).expect("the file is generated and tested");
    let tags: HashMap<_, _> = tagged.into_iter().map(|tagged| (tagged.name, tagged.fields)).collect();
    let mut all: HashMap<&'static str, Vec<Field>> = HashMap::new();
    for name in Schema::type_names().filter(|name| name.starts_with(PACKAGE)) {
        let Some(schema) = Schema::for_type(name) else { continue };
        let own = tags.get(name);
        let fields = schema.properties().filter_map(|(field, of)| self::field(name, schema, own, field, of));
        all.insert(name, fields.collect());
    }
    // Keeps only types that lead to a rule.
    let mut types_with_rules: HashSet<&str> = HashSet::new();
    loop {
        let leads = |fields: &[Field]| fields.iter().any(|field| field.leads_to_rule(&types_with_rules));
        let found: HashSet<&str> = all.iter().filter(|(_, fields)| leads(fields)).map(|(name, _)| *name).collect();
        if found.len() == types_with_rules.len() {
            break;
        }
        types_with_rules = found;
    }
    let leads = |field: &Field| field.leads_to_rule(&types_with_rules);
    let types = all.into_iter().filter(|(name, _)| types_with_rules.contains(name));
    types.map(|(name, fields)| (name, Type { fields: fields.into_iter().filter(leads).collect() })).collect()
});

/// Returns a field with its rules; `None` if its validation is a function of the kind.
///
/// `tags` are the tags of the whole type. A field of an enum type that the schema requires is also required here,
/// because upstream's enum validation reports an empty string as `FieldValueRequired`.
fn field(
    type_name: &'static str,
    parent: Schema<'static>,
    tags: Option<&BTreeMap<&'static str, FieldTags>>,
    name: &'static str,
    schema: Schema<'static>,
) -> Option<Field> {
    let short = type_name.strip_prefix(PACKAGE).unwrap_or(type_name);
    if BY_FUNCTION.iter().any(|(by, fields)| *by == short && fields.contains(&name)) {
        return None;
    }
    let (shape, item_schema) = match (schema.items(), schema.additional_properties()) {
        (Some(item), _) => (Cardinality::List, item),
        (None, Some(value)) => (Cardinality::Map, value),
        (None, None) => (Cardinality::One, schema),
    };
    let mut rule = tags.and_then(|tags| tags.get(name)).cloned().unwrap_or_default();
    // kube-apiserver does not validate enums of statuses without a tag.
    if rule.r#enum || !type_name.ends_with("Status") {
        rule.values = item_schema.enum_values();
        rule.required |= !rule.values.is_empty() && parent.requires(name);
    }
    rule.unset_when_empty = UNSET_WHEN_EMPTY.contains(&(short, name));
    Some(Field { name, rule, shape, inner: item_schema.name() })
}

/// Returns the values of an enum in the `OpenAPI` document, for a function that validates the field.
///
/// `type_name` has no package prefix, such as `core.v1.Taint`. For a list or map the values of its items are returned.
/// Debug builds panic if the field has no enum, so a test that reaches the rule finds a misspelt name. Release builds
/// return an empty list, with which every value is unsupported.
pub(crate) fn values(type_name: &str, field: &str) -> Vec<&'static str> {
    let schema = Schema::for_type(&format!("{PACKAGE}{type_name}")).and_then(|schema| schema.property(field));
    let item_schema = schema.map(|schema| schema.items().or_else(|| schema.additional_properties()).unwrap_or(schema));
    let found = item_schema.map(|schema| schema.enum_values()).unwrap_or_default();
    debug_assert!(!found.is_empty(), "{type_name}.{field} has no enum");
    found
}

impl Field {
    /// Returns `true` if the field has a rule, or is of a type that has one.
    fn leads_to_rule(&self, types_with_rules: &HashSet<&str>) -> bool {
        self.rule != FieldTags::default() || self.inner.is_some_and(|inner| types_with_rules.contains(inner))
    }
}
