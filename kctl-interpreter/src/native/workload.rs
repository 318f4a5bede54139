//! What the kinds with counters in their status have in common: collecting the counters and adding them up.

use serde_json::{Map, Value};

use super::{Items, NativeError, Result, nested};
use crate::{
    operation::AggregatedStatusItem,
    typed::{Parts, Typed},
};

/// What the health of a workload is read from: counters of its status, and the number of replicas that it wants.
pub(super) const HEALTH: Parts = &[
    ("ObjectMeta", &["generation"]),
    ("DaemonSetSpec", &[]),
    ("DeploymentSpec", &["replicas"]),
    ("ReplicaSetSpec", &["replicas"]),
    ("StatefulSetSpec", &["replicas"]),
];

/// The annotation that tells which generation of the control plane's object a cluster's object was made from
/// (`ResourceTemplateGenerationAnnotationKey` in Karmada's `work/v1alpha2`).
const TEMPLATE_GENERATION: &str = "resourcetemplate.karmada.io/generation";

/// How the status of a kind is collected and added up. The differences between kinds are Karmada's.
#[expect(clippy::struct_excessive_bools, reason = "each is another difference between kinds")]
pub(super) struct Counters {
    /// The name of the kind and of its Go type.
    pub(super) kind: &'static str,
    /// The Go type of what clusters report: the status with two generations.
    pub(super) member: &'static str,
    /// The counters that are collected and summed.
    pub(super) summed: &'static [&'static str],
    /// Whether `observedGeneration` is collected. A `StatefulSet`'s is not.
    pub(super) is_observed_collected: bool,
    /// Whether the annotation is read before the status: where both are wrong, that decides which error is told.
    pub(super) is_annotation_read_first: bool,
    /// Whether a cluster counts as up to date by its own generation alone. That is a mistake that Karmada makes for
    /// `StatefulSet`s; it is kept because the numbers must agree.
    pub(super) is_template_generation_ignored: bool,
    /// Whether the object also counts as changed when its status has more than counters, as a `DaemonSet`'s does.
    pub(super) is_whole_status_compared: bool,
}

/// Sets the number of replicas where the object has one.
pub(super) fn revise(mut object: Value, field: &str, replicas: i64) -> Result<Value> {
    if nested::int64(&object, &["spec", field])?.is_some() {
        nested::set(&mut object, &["spec", field], replicas.into())?;
    }
    Ok(object)
}

/// Collects the counters of an object in a cluster, and which generations they are of.
pub(super) fn status(counters: &Counters, object: &Value) -> Result<Value> {
    let Some(status) = nested::map(object, &["status"])? else { return Ok(Value::Null) };
    if counters.is_annotation_read_first {
        template_generation(object)?;
    }
    let status = Typed::from_object(counters.member, &Value::Object(status.clone()))
        .map_err(NativeError::object(counters.kind))?;
    let mut collected = Typed::zero(counters.member);
    for field in counters.summed {
        let pointer = format!("/{field}");
        *collected.at_mut(&pointer) = status.number(&pointer).into();
    }
    if counters.is_observed_collected {
        *collected.at_mut("/observedGeneration") = status.number("/observedGeneration").into();
    }
    let generation = nested::int64(object, &["metadata", "generation"]).ok().flatten().unwrap_or_default();
    *collected.at_mut("/generation") = generation.into();
    *collected.at_mut("/resourceTemplateGeneration") = template_generation(object)?.into();
    let collected = collected.into_object();
    // Nothing at all says that the cluster has not reported yet.
    Ok(if collected.as_object().is_some_and(Map::is_empty) { Value::Null } else { collected })
}

fn template_generation(object: &Value) -> Result<i64> {
    let annotations = nested::map(object, &["metadata", "annotations"]).ok().flatten();
    // One annotation of another type hides all of them (`GetAnnotations` upstream); a null is as good as an empty text.
    let annotations = annotations.filter(|map| map.values().all(|value| value.is_string() || value.is_null()));
    let text = annotations.and_then(|annotations| annotations.get(TEMPLATE_GENERATION)?.as_str()).unwrap_or_default();
    text.parse().map_err(|_| NativeError::AnnotationNotNumber {
        text: text.to_owned(),
        annotation: TEMPLATE_GENERATION,
        object: nested::described(object),
    })
}

/// Adds the counters of all clusters up. `observedGeneration` follows when every cluster has caught up.
pub(super) fn aggregate(counters: &Counters, object: Value, items: Items<'_>) -> Result<Value> {
    let items = items.unwrap_or_default();
    let mut typed = Typed::from_object(counters.kind, &object).map_err(NativeError::object(counters.kind))?;
    let generation = typed.number("/metadata/generation");
    let mut sums = vec![0i64; counters.summed.len()];
    let mut caught_up = 0;
    for member in members(counters.member, items) {
        let (_cluster, member) = member?;
        let member_generation = member.number("/generation");
        let wanted = if counters.is_template_generation_ignored { member_generation } else { generation };
        let is_caught_up = member.number("/observedGeneration") >= member_generation
            && member.number("/resourceTemplateGeneration") >= wanted;
        caught_up += usize::from(is_caught_up);
        for (sum, field) in sums.iter_mut().zip(counters.summed) {
            *sum += member.number(&format!("/{field}"));
        }
    }
    let mut changed = counters.is_whole_status_compared && has_more_than_counters(&typed);
    if caught_up == items.len() {
        changed |= replace(typed.at_mut("/status/observedGeneration"), generation.into());
    }
    for (sum, field) in sums.into_iter().zip(counters.summed) {
        changed |= replace(typed.at_mut(&format!("/status/{field}")), int32(sum));
    }
    Ok(if changed { typed.into_object() } else { object })
}

/// Reads what the clusters reported, without those that have not.
pub(super) fn members<'a>(
    r#type: &'static str,
    items: &'a [AggregatedStatusItem],
) -> impl Iterator<Item = Result<(&'a str, Typed)>> {
    items.iter().filter_map(move |item| {
        let status = item.status.as_ref().filter(|status| !status.is_null())?;
        Some(member(r#type, item, status).map(|member| (item.cluster_name.as_str(), member)))
    })
}

fn member(r#type: &'static str, item: &AggregatedStatusItem, status: &Value) -> Result<Typed> {
    Typed::from_json(r#type, status).map_err(|error| NativeError::MemberStatusInvalid {
        cluster: item.cluster_name.clone(),
        problem: error.to_string(),
    })
}

/// Returns a sum in the type of the counters: Go's wraps, too.
#[expect(clippy::cast_possible_truncation, reason = "that is what Go does, too")]
pub(super) fn int32(sum: i64) -> Value {
    i64::from(sum as i32).into()
}

fn has_more_than_counters(typed: &Typed) -> bool {
    !typed.at("/status/collisionCount").is_null() || !typed.list("/status/conditions").is_empty()
}

fn replace(place: &mut Value, value: Value) -> bool {
    let changed = *place != value;
    *place = value;
    changed
}
