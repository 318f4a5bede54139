//! Works → objects of the members, and back: what became of them.
//!
//! There is a controller for each member: one that is away holds up nobody else.

use std::hash::{DefaultHasher, Hash, Hasher};

use kctl::{
    interpreter::operation::{InterpretHealth, InterpretStatus, Object as Subject, Retain, Retention},
    object::Object,
    prelude::*,
    reconcile::{CachesOn, Controller, MayCreate, MayDelete, MayUpdate, OnCluster, WritesOn},
};
use serde_json::Value;

use crate::{
    clusters::{Member1, Member2},
    interpret::ask,
    kinds::{MemberCluster, Work, WorkStatus},
    members::is_ready,
    works::CLUSTER,
};

/// On objects of members: the work that they are from.
pub(crate) const WORK: &str = "fleet.example.com/work";
/// On objects of members: what was written there last, so that fields that a template drops are dropped there, too.
const WRITTEN: &str = "fleet.example.com/written";

macro_rules! execution {
    ($controller:ident, $member:ident) => {
        /// Brings the works of a member to it.
        #[controller(
                            of = Work,
                            watches = Deployment(create, update, delete, map = work_of, selector = WORK, on = $member),
                            watches = Service(create, update, delete, map = work_of, selector = WORK, on = $member),
                            watches = ConfigMap(create, update, delete, map = work_of, selector = WORK, on = $member),
                            watches = Secret(create, update, delete, map = work_of, selector = WORK, on = $member),
                            watches = Pod(create, update, delete, map = work_of, selector = WORK, on = $member),
                            reads = Namespace(create, on = $member),
                            watches = MemberCluster(map = works_of),
                            primary(selector = format!("{CLUSTER}={}", $member::NAME)),
                            finalizer = "fleet.example.com/execution",
                            backoff("1s", max = "30s"),
                            name = $member::NAME
                        )]
        pub(crate) struct $controller;

        impl Reconcile for $controller {
            async fn reconcile(&self, work: Arc<Work>, cx: Context<Self>) -> Result<Action> {
                if !is_ready(&cx, $member::NAME) {
                    // Its return is a change.
                    return Ok(Action::await_change());
                }
                let there = cx.cluster($member);
                let placed = place(&there, &work).await;
                let status = match &placed {
                    Ok(observed) => look(observed).await?,
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
            async fn finalize(&self, work: Arc<Work>, cx: Context<Self>) -> Result<()> {
                let known = cx.store::<MemberCluster>().get(&Key::cluster($member::NAME)).is_some();
                if !known {
                    // A cluster that has left the fleet keeps what it has.
                    return Ok(());
                }
                if !is_ready(&cx, $member::NAME) {
                    return Err(format!("{} is away: its objects wait for it", $member::NAME).into());
                }
                remove(&cx.cluster($member), &work).await
            }
        }
    };
}

execution!(OnMember1, Member1);
execution!(OnMember2, Member2);

/// What a controller may do with a kind on a member.
trait Manages<M, K>:
    CachesOn<M, K> + WritesOn<M, K, Grant: MayCreate<Self, K> + MayUpdate<Self, K> + MayDelete<Self, K>>
{
}
impl<C, M, K> Manages<M, K> for C where
    C: CachesOn<M, K> + WritesOn<M, K, Grant: MayCreate<C, K> + MayUpdate<C, K> + MayDelete<C, K>>
{
}

/// The same with all kinds of templates.
trait Executes<M>:
    Manages<M, Deployment>
    + Manages<M, Service>
    + Manages<M, ConfigMap>
    + Manages<M, Secret>
    + Manages<M, Pod>
    + CachesOn<M, Namespace>
    + WritesOn<M, Namespace, Grant: MayCreate<Self, Namespace>>
{
}
impl<C, M> Executes<M> for C where
    C: Manages<M, Deployment>
        + Manages<M, Service>
        + Manages<M, ConfigMap>
        + Manages<M, Secret>
        + Manages<M, Pod>
        + CachesOn<M, Namespace>
        + WritesOn<M, Namespace, Grant: MayCreate<C, Namespace>>
{
}

/// Has the object of a work be on the member as the work says; returns what is there.
async fn place<C: Executes<M>, M: Cluster>(there: &OnCluster<C, M>, work: &Work) -> Result<Value> {
    let namespace = work.namespace().unwrap_or_default();
    if there.store::<Namespace>().get(&Key::cluster(&namespace)).is_none() {
        let metadata = ObjectMeta { name: Some(namespace), ..ObjectMeta::default() };
        there.objects::<Namespace>().create(&Namespace { metadata, ..Namespace::default() }).await?;
    }
    match kind_of(work) {
        "Deployment" => put::<Deployment, C, M>(there, work).await,
        "Service" => put::<Service, C, M>(there, work).await,
        "ConfigMap" => put::<ConfigMap, C, M>(there, work).await,
        "Secret" => put::<Secret, C, M>(there, work).await,
        "Pod" => put::<Pod, C, M>(there, work).await,
        other => Err(format!("the kind {other} is not brought to members")).terminal(),
    }
}

async fn put<K, C, M>(there: &OnCluster<C, M>, work: &Work) -> Result<Value>
where
    K: Object,
    C: Controller + Manages<M, K>,
    M: Cluster,
{
    let mut desired = work.spec.manifest.clone();
    let written = hash(&desired);
    desired["metadata"]["labels"][WORK] = work.name_any().into();
    desired["metadata"]["annotations"][WRITTEN] = written.as_str().into();
    let Some(observed) = there.store::<K>().get(&key_of(work)) else {
        // One that exists is somebody else's: the refusal says so.
        let created = there.objects::<K>().create(&kctl::from_json(desired)?).await?;
        return Ok(serde_json::to_value(&*created)?);
    };
    let observed = serde_json::to_value(&*observed)?;
    let retention = Retention { desired: desired.clone(), observed: observed.clone() };
    let mut desired = ask::<Retain>(&observed, retention).await?.unwrap_or(desired);
    if observed["metadata"]["annotations"][WRITTEN] == *written && contains(&observed, &desired) {
        return Ok(observed);
    }
    desired["metadata"]["resourceVersion"] = observed["metadata"]["resourceVersion"].clone();
    let updated = there.objects::<K>().update(&kctl::from_json(desired)?).await?;
    Ok(serde_json::to_value(&*updated)?)
}

/// Takes the object of a work off the member.
async fn remove<C: Executes<M>, M: Cluster>(there: &OnCluster<C, M>, work: &Work) -> Result<()> {
    match kind_of(work) {
        "Deployment" => take::<Deployment, C, M>(there, work).await,
        "Service" => take::<Service, C, M>(there, work).await,
        "ConfigMap" => take::<ConfigMap, C, M>(there, work).await,
        "Secret" => take::<Secret, C, M>(there, work).await,
        "Pod" => take::<Pod, C, M>(there, work).await,
        // It was never brought there.
        _ => Ok(()),
    }
}

async fn take<K, C, M>(there: &OnCluster<C, M>, work: &Work) -> Result<()>
where
    K: Object,
    C: Controller + Manages<M, K>,
    M: Cluster,
{
    let Some(observed) = there.store::<K>().get(&key_of(work)) else { return Ok(()) };
    match there.objects::<K>().delete(&observed).await {
        Err(error) if error.is_not_found() => Ok(()),
        done => Ok(done?),
    }
}

/// What is worth to be known of an object of a member.
async fn look(observed: &Value) -> Result<WorkStatus> {
    let status = ask::<InterpretStatus>(observed, Subject(observed.clone())).await?;
    let health = match ask::<InterpretHealth>(observed, Subject(observed.clone())).await? {
        Some(true) => "Healthy",
        Some(false) => "Unhealthy",
        None => "Unknown",
    };
    Ok(WorkStatus {
        applied: true,
        applied_message: String::new(),
        status: status.filter(Value::is_object),
        health: health.into(),
    })
}

fn kind_of(work: &Work) -> &str {
    work.spec.manifest["kind"].as_str().unwrap_or_default()
}

/// The place of the object of a work: the namespaces are those of the control plane.
fn key_of<K: Object>(work: &Work) -> Key<K> {
    let name = work.spec.manifest["metadata"]["name"].as_str().unwrap_or_default();
    Key::namespaced(&work.namespace().unwrap_or_default(), name)
}

fn hash(manifest: &Value) -> String {
    let mut hasher = DefaultHasher::new();
    manifest.to_string().hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

/// Whether everything that is wanted is there: defaults and what others have added are no difference.
fn contains(whole: &Value, part: &Value) -> bool {
    match (whole, part) {
        (Value::Object(whole), Value::Object(part)) => {
            part.iter().all(|(name, value)| whole.get(name).is_some_and(|found| contains(found, value)))
        }
        (Value::Array(whole), Value::Array(part)) => {
            whole.len() == part.len() && whole.iter().zip(part).all(|(whole, part)| contains(whole, part))
        }
        (whole, part) => whole == part,
    }
}

fn work_of<K: ResourceExt>(object: &K, _works: &Store<Work>) -> Vec<Key<Work>> {
    let name = object.labels().get(WORK);
    name.map(|name| Key::namespaced(&object.namespace().unwrap_or_default(), name)).into_iter().collect()
}

fn works_of(_cluster: &MemberCluster, works: &Store<Work>) -> Vec<Key<Work>> {
    // The store has those of one cluster only.
    works.keys()
}
