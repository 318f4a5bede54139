//! Collecting and summing the counters of workloads: Deployments, `ReplicaSet`s, `StatefulSet`s and
//! `DaemonSet`s.
//!
//! A member cluster's status is collected with two generations: the member object's, and the generation of the control
//! plane's object that it was made from. By both, aggregation knows whether the sums describe the latest `spec`. The Go
//! types of these statuses are in Karmada's `pkg/resourceinterpreter/default/native/status_type.go`.

use serde_json::{Map, Value};

use super::{Items, NativeError, Result, nested};
use crate::{
    operation::AggregatedStatusItem,
    typed::{Parts, Typed},
};

/// The fields that decide the health of a workload: counters of the status, the generation and `spec.replicas`.
pub(super) const HEALTH: Parts = &[
    ("ObjectMeta", &["generation"]),
    ("DaemonSetSpec", &[]),
    ("DeploymentSpec", &["replicas"]),
    ("ReplicaSetSpec", &["replicas"]),
    ("StatefulSetSpec", &["replicas"]),
];

/// The annotation with the generation of the control plane's object from which the member cluster's
/// object was made (`ResourceTemplateGenerationAnnotationKey` in Karmada's `work/v1alpha2`).
const TEMPLATE_GENERATION: &str = "resourcetemplate.karmada.io/generation";

/// The fields of one kind, and how its rules differ from the rules of the others.
pub(super) struct Counters {
    /// The name of the kind and of its Go type.
    pub(super) kind: &'static str,
    /// The Go type of the collected status: the kind's status with two generations.
    pub(super) member: &'static str,
    /// The counters of the status that are collected and summed.
    pub(super) summed: &'static [&'static str],
    /// The differences from the other kinds.
    pub(super) quirks: &'static [Quirk],
}

impl Counters {
    fn has(&self, quirk: Quirk) -> bool {
        self.quirks.contains(&quirk)
    }
}

/// A difference between kinds that Karmada's rules have. It is kept because the results must agree.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Quirk {
    /// `observedGeneration` is not collected.
    OmitsObservedGeneration,
    /// The annotation is read before the status: if both are invalid, this decides which error is
    /// returned.
    ReadsAnnotationFirst,
    /// The template generation of a member cluster is compared with the generation of the member's
    /// object, and not with the generation of the control plane's object.
    ComparesMemberGeneration,
    /// An object counts as changed if its status has more than counters.
    ComparesWholeStatus,
}

/// Sets the number of replicas in `spec`, if the object has the field. An object without it is
/// returned unchanged.
///
/// # Errors
/// The field exists and is not an integer.
pub(super) fn revise(mut object: Value, field: &str, replicas: i64) -> Result<Value> {
    if nested::int64(&object, &["spec", field])?.is_some() {
        nested::set(&mut object, &["spec", field], replicas.into())?;
    }
    Ok(object)
}

/// Returns the counters of the status and the generations to which they belong; `null` for an
/// object without a status, and if all of them are 0.
///
/// # Errors
/// The status does not have its Go type, or the annotation [`TEMPLATE_GENERATION`] is absent or not
/// a number. Karmada sets the annotation on each object that it writes to a member cluster.
pub(super) fn status(counters: &Counters, object: &Value) -> Result<Value> {
    let Some(status) = nested::map(object, &["status"])? else { return Ok(Value::Null) };
    if counters.has(Quirk::ReadsAnnotationFirst) {
        template_generation(object)?;
    }
    let status = Typed::from_object(counters.member, &Value::Object(status.clone()))
        .map_err(NativeError::object(counters.kind))?;
    let mut collected = Typed::zero(counters.member);
    for field in counters.summed {
        let pointer = format!("/{field}");
        *collected.at_mut(&pointer) = status.number(&pointer).into();
    }
    if !counters.has(Quirk::OmitsObservedGeneration) {
        *collected.at_mut("/observedGeneration") = status.number("/observedGeneration").into();
    }
    let generation = nested::int64(object, &["metadata", "generation"]).ok().flatten().unwrap_or_default();
    *collected.at_mut("/generation") = generation.into();
    *collected.at_mut("/resourceTemplateGeneration") = template_generation(object)?.into();
    let collected = collected.into_object();
    // Null means that the cluster has not reported yet.
    Ok(if collected.as_object().is_some_and(Map::is_empty) { Value::Null } else { collected })
}

/// Returns the number in the annotation [`TEMPLATE_GENERATION`].
fn template_generation(object: &Value) -> Result<i64> {
    let annotations = nested::map(object, &["metadata", "annotations"]).ok().flatten();
    // One annotation that is not a string hides all of them (`GetAnnotations` upstream). Null counts as an empty
    // string.
    let annotations = annotations.filter(|map| map.values().all(|value| value.is_string() || value.is_null()));
    let text = annotations.and_then(|annotations| annotations.get(TEMPLATE_GENERATION)?.as_str()).unwrap_or_default();
    text.parse().map_err(|_| NativeError::AnnotationNotNumber {
        text: text.to_owned(),
        annotation: TEMPLATE_GENERATION,
        object: nested::describe(object),
    })
}

/// Returns the object with the sums of the counters of all clusters.
///
/// `observedGeneration` becomes the generation of the object once every cluster has caught up,
/// including those that have not reported. A cluster has caught up if its controller observed the
/// latest member object, and that object was made from the latest template. Without any item the
/// condition holds. Other fields of the status are kept, and an unchanged object is returned as it was given.
pub(super) fn aggregate(counters: &Counters, object: Value, items: Items<'_>) -> Result<Value> {
    let items = items.unwrap_or_default();
    let mut typed = Typed::from_object(counters.kind, &object).map_err(NativeError::object(counters.kind))?;
    let generation = typed.number("/metadata/generation");
    let mut sums = vec![0i64; counters.summed.len()];
    let mut caught_up = 0;
    for member in member_statuses(counters.member, items) {
        let (_cluster, member) = member?;
        let member_generation = member.number("/generation");
        let expected = if counters.has(Quirk::ComparesMemberGeneration) { member_generation } else { generation };
        let is_caught_up = member.number("/observedGeneration") >= member_generation
            && member.number("/resourceTemplateGeneration") >= expected;
        caught_up += usize::from(is_caught_up);
        for (sum, field) in sums.iter_mut().zip(counters.summed) {
            *sum += member.number(&format!("/{field}"));
        }
    }
    let mut changed = counters.has(Quirk::ComparesWholeStatus) && has_more_than_counters(&typed);
    if caught_up == items.len() {
        changed |= set_if_changed(typed.at_mut("/status/observedGeneration"), generation.into());
    }
    for (sum, field) in sums.into_iter().zip(counters.summed) {
        changed |= set_if_changed(typed.at_mut(&format!("/status/{field}")), int32(sum));
    }
    Ok(if changed { typed.into_object() } else { object })
}

/// Returns the name and the decoded status of each cluster, without the clusters that have not
/// reported.
pub(super) fn member_statuses<'a>(
    r#type: &'static str,
    items: &'a [AggregatedStatusItem],
) -> impl Iterator<Item = Result<(&'a str, Typed)>> {
    items.iter().filter_map(move |item| {
        let status = item.status.as_ref().filter(|status| !status.is_null())?;
        Some(member_status(r#type, item, status).map(|member| (item.cluster_name.as_str(), member)))
    })
}

fn member_status(r#type: &'static str, item: &AggregatedStatusItem, status: &Value) -> Result<Typed> {
    Typed::from_json(r#type, status).map_err(|error| NativeError::MemberStatusInvalid {
        cluster: item.cluster_name.clone(),
        problem: error.to_string(),
    })
}

/// Returns these fields of the status, which has the Go type `r#type`; `null` for an object without
/// a status.
pub(super) fn status_fields(
    r#type: &'static str,
    pointers: impl IntoIterator<Item = &'static str>,
    object: &Value,
) -> Result<Value> {
    let Some(status) = nested::map(object, &["status"])? else { return Ok(Value::Null) };
    let status = Typed::from_object(r#type, &Value::Object(status.clone())).map_err(NativeError::object(r#type))?;
    let mut collected = Typed::zero(r#type);
    for pointer in pointers {
        *collected.at_mut(pointer) = status.at(pointer).clone();
    }
    Ok(collected.into_object())
}

/// Returns a sum as a 32-bit number, wrapped as in Go.
#[expect(clippy::cast_possible_truncation, reason = "that is what Go does, too")]
pub(super) fn int32(sum: i64) -> Value {
    i64::from(sum as i32).into()
}

/// Returns `true` if the status has a `collisionCount` or conditions.
fn has_more_than_counters(typed: &Typed) -> bool {
    !typed.at("/status/collisionCount").is_null() || !typed.list("/status/conditions").is_empty()
}

fn set_if_changed(target: &mut Value, value: Value) -> bool {
    let changed = *target != value;
    *target = value;
    changed
}
