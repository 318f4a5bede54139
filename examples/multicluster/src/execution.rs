//! The controllers `member1` and `member2`: apply works to a member, and report the status of its objects.
//!
//! Each member has its own controller and work queue, so that an unreachable member does not delay the other one.

use kctl::{
    k8s::api::rbac::v1::PolicyRule,
    karmada::{
        kind::Gvk,
        operation::{InterpretHealth, InterpretStatus, Object as Subject, Retain, Retention},
        quantity::Quantity,
    },
    kube::api::{DeleteParams, PostParams, Preconditions},
    object::Stored,
    prelude::*,
    reconcile::{
        Controller, OnCluster,
        bounds::{CachesOn, HasRulesOn, MayCreate, MayGetPrimary, WritesOn},
    },
};
use serde_json::Value;

use crate::{
    APP,
    clusters::{Member1, Member2},
    found::{Finds, FoundKinds},
    interpret::Rules,
    kinds::{MemberCluster, Work, WorkStatus},
    members::{is_leaving, is_ready},
    templates::any,
    works::CLUSTER,
};

/// Label of objects on members that come from works. The controllers watch only objects with this label.
const PLACED: &str = "fleet.example.com/placed";
/// Annotation with the name of the work. An object without it belongs to the member and is never changed.
const WORK: &str = "fleet.example.com/work";
/// Annotation with a hash of the last applied manifest. The hash changes if the template drops a field. A comparison of
/// the remaining fields would not detect that.
const WRITTEN: &str = "fleet.example.com/written";
/// Metadata fields that an update copies from the object on the member.
const KEPT: [&str; 3] = ["resourceVersion", "finalizers", "ownerReferences"];
/// Metadata fields that an update merges with those on the member, each with the annotation that lists the keys of the
/// last applied manifest. A listed key that the manifest lacks by now is removed.
const MERGED: [(&str, &str); 2] =
    [("labels", "fleet.example.com/managed-labels"), ("annotations", "fleet.example.com/managed-annotations")];

/// Fields of built-in kinds that hold quantities, or maps of them.
const QUANTITIES: [&str; 9] =
    ["capacity", "divisor", "hard", "limits", "max", "min", "overhead", "requests", "sizeLimit"];

/// Declares the controller of a member. Members are types, so each member needs its own declaration.
#[rustfmt::skip] // Each run of rustfmt would indent the attribute further.
macro_rules! execution {
    ($controller:ident, $member:ident) => {
        /// Applies the works of a member to it.
        #[controller(
            of = Work,
            rbac(placing(), on = $member),
            reads = Namespace(create, on = $member),
            watches = MemberCluster(map = works_of),
            primary(get, selector = format!("{CLUSTER}={}", $member::NAME)),
            finalizer = "fleet.example.com/execution",
            backoff("1s", max = "30s"),
            name = $member::NAME
        )]
        pub(crate) struct $controller {
            /// The watched kinds on the member, with their objects.
            kinds: FoundKinds,
            /// The interpreters.
            rules: Rules,
        }

        impl Finds for $controller {
            const CLUSTER: &str = $member::NAME;
            const LABELS: &str = PLACED;

            fn with(kinds: FoundKinds, rules: Rules) -> Self {
                Self { kinds, rules }
            }

            fn key_of(_kind: &Gvk, placed: &Stored) -> Option<Key<Work>> {
                work_of(placed)
            }
        }

        impl Reconcile for $controller {
            /// Applies the work's object if the member is ready, and writes the outcome into the work.
            async fn reconcile(&self, work: Arc<Work>, cx: Context<Self>) -> Result<Action> {
                if !is_ready(&cx, $member::NAME) {
                    // When the member is ready again, its Cluster changes, which enqueues its works.
                    return Ok(Action::await_change());
                }
                let placed = apply_to_member(&cx, &cx.cluster($member), &self.kinds, &self.rules, &work).await;
                let status = match &placed {
                    Ok(observed) => read_status(&self.rules, observed).await,
                    Err(error) => WorkStatus {
                        applied: false,
                        applied_message: error.to_string(),
                        ..work.status.clone().unwrap_or_default()
                    },
                };
                cx.patch_status(status).await?;
                placed.map(|_observed| Action::await_change())
            }
        }

        impl Finalize for $controller {
            /// Deletes the object from the member. While the member is unreachable, the work remains and the deletion
            /// is retried.
            async fn finalize(&self, work: Arc<Work>, cx: Context<Self>) -> Result<()> {
                let Some(cluster) = cx.store::<MemberCluster>().get(&Key::cluster_scoped($member::NAME)) else {
                    // The Cluster object is gone, so the member may no longer exist: remove the finalizer.
                    return Ok(());
                };
                if is_ready(&cx, $member::NAME) {
                    return remove(&cx.cluster($member), &self.kinds, &work).await;
                }
                if is_leaving(&cluster) {
                    // As in Karmada, a cluster that leaves while unreachable keeps its objects. Otherwise it could
                    // never leave.
                    return Ok(());
                }
                Err(format!("{} is not ready: its objects are deleted when it is ready again", $member::NAME).into())
            }
        }
    };
}

execution!(OnMember1, Member1);
execution!(OnMember2, Member2);

/// Returns the permissions on members. Any kind of the control plane may be applied there.
fn placing() -> PolicyRule {
    any("*", &["get", "list", "watch", "create", "update", "delete"])
}

/// A controller that has the permissions that [`apply_to_member`] and [`remove`] need on the member `M`. The compiler checks
/// them.
trait Executes<M>:
    HasRulesOn<M> + CachesOn<M, Namespace> + WritesOn<M, Namespace, Verbs: MayCreate<Self, Namespace>>
{
}
impl<C, M> Executes<M> for C where
    C: HasRulesOn<M> + CachesOn<M, Namespace> + WritesOn<M, Namespace, Verbs: MayCreate<C, Namespace>>
{
}

/// Applies the object of a work to the member, and returns the object as stored there.
///
/// # Errors
/// The member lacks the kind, has an object of that name that does not come from this work, or rejects the write.
async fn apply_to_member<C, M>(
    cx: &Context<C>,
    there: &OnCluster<C, M>,
    kinds: &FoundKinds,
    rules: &Rules,
    work: &Work,
) -> Result<Value>
where
    C: Executes<M> + Controller<Primary = Work, Verbs: MayGetPrimary<C, Work>>,
    M: Cluster,
{
    let namespace = work.namespace().unwrap_or_default();
    let (kind, name) = (Gvk::from_object(&work.spec.manifest), name_of(work));
    let Some(api) = kinds.api(there.client(), &kind, &namespace).await? else {
        let Gvk { kind, .. } = &kind;
        let version = Gvk::from_object(&work.spec.manifest).api_version();
        return Err(format!("{} has no kind {kind} in {version}: install its definition there", M::NAME).into());
    };
    if there.store::<Namespace>().get(&Key::cluster_scoped(&namespace)).is_none() {
        let metadata = ObjectMeta { name: Some(namespace.clone()), ..ObjectMeta::default() };
        there.objects::<Namespace>().create(&Namespace { metadata, ..Namespace::default() }).await?;
    }
    let mut desired = work.spec.manifest.clone();
    let written = hash(&desired);
    desired["metadata"]["labels"][PLACED] = "true".into();
    desired["metadata"]["annotations"][WORK] = work.name_any().into();
    desired["metadata"]["annotations"][WRITTEN] = written.as_str().into();
    for (field, keys) in MERGED {
        desired["metadata"]["annotations"][keys] = keys_of(&desired["metadata"][field]).into();
    }
    // The cache lags behind our writes. It suffices to detect that no write is needed. Before a write, the object is
    // read live.
    if let Some(observed) = kinds.get(&kind, &namespace, name).await?
        && is_as_wanted(&observed, &retain_fields(rules, &observed, &desired).await?)
    {
        return Ok(observed);
    }
    let Some(observed) = api.get_opt(name).await? else {
        ensure_not_deleting(work, &*cx.get().await?)?;
        let created = api.create(&written_by_us(), &kctl::from_json(desired)?).await?;
        return Ok(serde_json::to_value(created)?);
    };
    let observed = serde_json::to_value(observed)?;
    if observed["metadata"]["annotations"][WORK] != *work.name_any() {
        let text =
            format!("{} {name} already exists on {}: delete it there, or select other objects", kind.kind, M::NAME);
        return Err(text.into());
    }
    let desired = retain_fields(rules, &observed, &desired).await?;
    if is_as_wanted(&observed, &desired) {
        return Ok(observed);
    }
    let updated = api.replace(name, &written_by_us(), &kctl::from_json(desired)?).await?;
    Ok(serde_json::to_value(updated)?)
}

/// Fails if the work is being deleted. The cache may start with an old state, and an object that is created for a
/// deleted work would remain on the member forever.
fn ensure_not_deleting(work: &Work, newest: &Work) -> Result<()> {
    if newest.metadata.uid == work.metadata.uid && newest.metadata.deletion_timestamp.is_none() {
        return Ok(());
    }
    Err(format!("work {} is being deleted, or was replaced by another work of its name", work.name_any()).into())
}

/// Returns the desired object with the fields that the member owns: the metadata, and those that `Retain` copies.
///
/// As in Karmada, `Retain` gets the object with the metadata.
async fn retain_fields(rules: &Rules, observed: &Value, desired: &Value) -> Result<Value> {
    let mut desired = desired.clone();
    retain_metadata(&mut desired, observed);
    let retention = Retention { desired: desired.clone(), observed: observed.clone() };
    Ok(rules.interpret::<Retain>(retention).await?.unwrap_or(desired))
}

/// Copies the metadata in [`KEPT`] from the object on the member, and its labels and annotations that the control plane
/// neither sets nor has set before.
fn retain_metadata(desired: &mut Value, observed: &Value) {
    let observed = &observed["metadata"];
    for field in KEPT {
        if let Some(own) = observed.get(field) {
            desired["metadata"][field] = own.clone();
        }
    }
    for (field, keys) in MERGED {
        let written: Vec<&str> = observed["annotations"][keys].as_str().unwrap_or_default().split(',').collect();
        let own = observed[field].as_object().into_iter().flatten();
        for (key, value) in own.filter(|(key, _)| !written.contains(&key.as_str())) {
            let merged = &mut desired["metadata"][field];
            if merged.get(key).is_none() {
                merged[key] = value.clone();
            }
        }
    }
}

/// Returns the keys of a map, separated by commas.
fn keys_of(map: &Value) -> String {
    map.as_object().into_iter().flatten().map(|(key, _)| key.as_str()).collect::<Vec<_>>().join(",")
}

/// Returns `true` if the object needs no update: the same manifest was applied, and none of its fields has changed
/// since.
fn is_as_wanted(observed: &Value, desired: &Value) -> bool {
    let written = |object: &Value| object["metadata"]["annotations"][WRITTEN].clone();
    written(observed) == written(desired) && contains(observed, desired)
}

/// Returns write parameters with this program as the field manager.
fn written_by_us() -> PostParams {
    PostParams { field_manager: Some(APP.into()), ..PostParams::default() }
}

/// Deletes the object of a work from the member, unless the object belongs to another work. The uid is a precondition.
async fn remove<C, M>(there: &OnCluster<C, M>, kinds: &FoundKinds, work: &Work) -> Result<()>
where
    C: Executes<M>,
    M: Cluster,
{
    let namespace = work.namespace().unwrap_or_default();
    // If the kind is missing, the object was never applied, or was deleted together with the CRD.
    let Some(api) = kinds.api(there.client(), &Gvk::from_object(&work.spec.manifest), &namespace).await? else {
        return Ok(());
    };
    let Some(observed) = api.get_opt(name_of(work)).await? else { return Ok(()) };
    if observed.annotations().get(WORK) != Some(&work.name_any()) {
        return Ok(());
    }
    let exactly = Preconditions { uid: observed.uid(), resource_version: None };
    let delete = DeleteParams { preconditions: Some(exactly), ..DeleteParams::default() };
    match api.delete(name_of(work), &delete).await {
        Err(kctl::kube::Error::Api(status)) if status.code == 404 => Ok(()),
        Err(error) => Err(error.into()),
        Ok(_gone_or_going) => Ok(()),
    }
}

/// Returns the status of a work, computed from its object on the member. If an interpreter fails, the work still counts
/// as applied, and the message contains the error.
async fn read_status(rules: &Rules, observed: &Value) -> WorkStatus {
    let (status, applied_message) = match rules.interpret::<InterpretStatus>(Subject(observed.clone())).await {
        Ok(status) => (status, String::new()),
        Err(error) => (None, format!("its status cannot be read: {error}")),
    };
    // As in Karmada, a kind without a health rule counts as healthy.
    let health = match rules.interpret::<InterpretHealth>(Subject(observed.clone())).await {
        Ok(Some(true) | None) => "Healthy",
        Ok(Some(false)) => "Unhealthy",
        Err(_) => "Unknown",
    };
    WorkStatus { applied: true, applied_message, status: status.filter(Value::is_object), health: health.into() }
}

/// Returns the name of a work's object.
fn name_of(work: &Work) -> &str {
    work.spec.manifest["metadata"]["name"].as_str().unwrap_or_default()
}

/// Returns the work that an object on a member comes from.
fn work_of(placed: &Stored) -> Option<Key<Work>> {
    let placed: PartialObjectMeta<Work> = serde_json::from_str(&placed.json()).ok()?;
    Some(Key::namespaced(&placed.namespace()?, placed.annotations().get(WORK)?))
}

/// Returns the FNV-1a hash of a manifest. It is stored on members, so it must be stable across releases.
fn hash(manifest: &Value) -> String {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    format!("{:016x}", manifest.to_string().bytes().fold(0xcbf2_9ce4_8422_2325, step))
}

/// Returns `true` if `whole` contains all fields of `part`. It ignores defaults and fields that other managers added.
///
/// API servers drop null and rewrite quantities, so null counts as absent, and `1000m` equals `1`. Otherwise such a
/// field would cause a write at each reconcile.
fn contains(whole: &Value, part: &Value) -> bool {
    match (whole, part) {
        (Value::Object(whole), Value::Object(part)) => {
            part.iter().filter(|(_, value)| !value.is_null()).all(|(name, value)| {
                let holds = |found: &Value| {
                    contains(found, value) || (QUANTITIES.contains(&name.as_str()) && are_same_amounts(found, value))
                };
                whole.get(name).is_some_and(holds)
            })
        }
        (Value::Array(whole), Value::Array(part)) => {
            whole.len() == part.len() && whole.iter().zip(part).all(|(whole, part)| contains(whole, part))
        }
        (whole, part) => whole == part,
    }
}

/// Returns `true` if both values are the same quantity, or maps with the same quantities.
fn are_same_amounts(whole: &Value, part: &Value) -> bool {
    let amount = |value: &Value| match value {
        Value::String(written) => written.parse::<Quantity>().ok(),
        Value::Number(number) => number.to_string().parse().ok(),
        _ => None,
    };
    match (whole, part) {
        (Value::Object(whole), Value::Object(part)) => {
            part.iter().all(|(name, value)| whole.get(name).is_some_and(|found| are_same_amounts(found, value)))
        }
        (whole, part) => amount(whole).is_some_and(|found| amount(part) == Some(found)),
    }
}

/// Returns all works of the member, after its Cluster has changed.
fn works_of(_cluster: &MemberCluster, works: &Store<Work>) -> Vec<Key<Work>> {
    // The store contains only the works of this cluster.
    works.keys()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn manifest_hash_is_stable_across_releases() {
        assert_eq!(hash(&kctl::json!({ "a": 1 })), "9c3e82dd6fcae8b1");
    }

    #[test]
    fn metadata_of_the_member_survives_updates() {
        let observed = kctl::json!({ "metadata": {
            "resourceVersion": "7",
            "labels": { "ours": "old", "dropped": "x", "theirs": "1" },
            "annotations": { "fleet.example.com/managed-labels": "dropped,ours", "theirs": "2" },
        } });
        let mut desired = kctl::json!({ "metadata": { "labels": { "ours": "new" } } });
        retain_metadata(&mut desired, &observed);
        let metadata = &desired["metadata"];
        assert_eq!(metadata["labels"], kctl::json!({ "ours": "new", "theirs": "1" }));
        assert_eq!(metadata["annotations"]["theirs"], "2");
        assert_eq!(metadata["resourceVersion"], "7");
    }

    #[test]
    fn null_and_rewritten_quantities_need_no_write() {
        let cases = [
            (kctl::json!({}), kctl::json!({ "secrets": null }), true),
            (kctl::json!({ "limits": { "cpu": "1" } }), kctl::json!({ "limits": { "cpu": "1000m" } }), true),
            (kctl::json!({ "limits": { "cpu": "1" } }), kctl::json!({ "limits": { "cpu": 1 } }), true),
            (kctl::json!({ "limits": { "cpu": "1" } }), kctl::json!({ "limits": { "cpu": "2" } }), false),
            (kctl::json!({ "limits": {} }), kctl::json!({ "limits": { "cpu": "1" } }), false),
            (kctl::json!({ "data": { "a": "1" } }), kctl::json!({ "data": { "a": "1000m" } }), false),
            (kctl::json!({ "sizeLimit": "1Gi" }), kctl::json!({ "sizeLimit": "1024Mi" }), true),
        ];
        for (whole, part, expected) in cases {
            assert_eq!(contains(&whole, &part), expected, "{part} in {whole}");
        }
    }
}
