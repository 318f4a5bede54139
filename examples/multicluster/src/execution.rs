//! Works → objects of the members, and back: what became of them.
//!
//! There is a controller for each member: one that is away holds up nobody else.

use kctl::{
    k8s::api::rbac::v1::PolicyRule,
    karmada::{
        kind::Gvk,
        operation::{InterpretHealth, InterpretStatus, Object as Subject, Retain, Retention},
    },
    kube::api::{DeleteParams, PostParams, Preconditions},
    object::Stored,
    prelude::*,
    reconcile::{CachesOn, Controller, HasRulesOn, MayCreate, MayGetPrimary, OnCluster, WritesOn},
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

/// A label of the objects of members that came from works.
const PLACED: &str = "fleet.example.com/placed";
/// An annotation on them: the work that they are from.
const WORK: &str = "fleet.example.com/work";
/// Another one: a hash of what was written there last, so that fields that a template drops are dropped there, too.
const WRITTEN: &str = "fleet.example.com/written";
/// What is the member's in the metadata of an object.
const KEPT: [&str; 3] = ["resourceVersion", "finalizers", "ownerReferences"];

macro_rules! execution {
    ($controller:ident, $member:ident) => {
        /// Brings the works of a member to it.
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
            kinds: FoundKinds,
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
            async fn reconcile(&self, work: Arc<Work>, cx: Context<Self>) -> Result<Action> {
                if !is_ready(&cx, $member::NAME) {
                    // Its return is a change.
                    return Ok(Action::await_change());
                }
                let placed = place(&cx, &cx.cluster($member), &self.kinds, &self.rules, &work).await;
                let status = match &placed {
                    Ok(observed) => look(&self.rules, observed).await,
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
                let Some(cluster) = cx.store::<MemberCluster>().get(&Key::cluster($member::NAME)) else {
                    // Nobody says that it is there.
                    return Ok(());
                };
                if is_ready(&cx, $member::NAME) {
                    return remove(&cx.cluster($member), &self.kinds, &work).await;
                }
                if is_leaving(&cluster) {
                    // As in Karmada, a cluster that leaves while it is away keeps what it has, or it could never leave.
                    return Ok(());
                }
                Err(format!("{} is away: its objects wait for it", $member::NAME).into())
            }
        }
    };
}

execution!(OnMember1, Member1);
execution!(OnMember2, Member2);

/// What is done on members: whatever the control plane has may go there.
fn placing() -> PolicyRule {
    any("*", &["get", "list", "watch", "create", "update", "delete"])
}

/// A controller that may do it.
trait Executes<M>:
    HasRulesOn<M> + CachesOn<M, Namespace> + WritesOn<M, Namespace, Grant: MayCreate<Self, Namespace>>
{
}
impl<C, M> Executes<M> for C where
    C: HasRulesOn<M> + CachesOn<M, Namespace> + WritesOn<M, Namespace, Grant: MayCreate<C, Namespace>>
{
}

/// Has the object of a work be on the member as the work says; returns what is there.
async fn place<C, M>(
    cx: &Context<C>,
    there: &OnCluster<C, M>,
    kinds: &FoundKinds,
    rules: &Rules,
    work: &Work,
) -> Result<Value>
where
    C: Executes<M> + Controller<Primary = Work, Grant: MayGetPrimary<C, Work>>,
    M: Cluster,
{
    let namespace = work.namespace().unwrap_or_default();
    let (kind, name) = (Gvk::of(&work.spec.manifest), name_of(work));
    let Some(api) = kinds.api(there.client(), &kind, &namespace).await? else {
        let Gvk { kind, .. } = &kind;
        let version = Gvk::of(&work.spec.manifest).api_version();
        return Err(format!("{} has no kind {kind} in {version}: install its definition there", M::NAME).into());
    };
    if there.store::<Namespace>().get(&Key::cluster(&namespace)).is_none() {
        let metadata = ObjectMeta { name: Some(namespace.clone()), ..ObjectMeta::default() };
        there.objects::<Namespace>().create(&Namespace { metadata, ..Namespace::default() }).await?;
    }
    let mut desired = work.spec.manifest.clone();
    let written = hash(&desired);
    desired["metadata"]["labels"][PLACED] = "true".into();
    desired["metadata"]["annotations"][WORK] = work.name_any().into();
    desired["metadata"]["annotations"][WRITTEN] = written.as_str().into();
    // What is watched lags behind what was written: it says that nothing is to be done, but not what.
    if let Some(observed) = kinds.get(&kind, &namespace, name).await?
        && is_as_wanted(&observed, &retained(rules, &observed, &desired).await?)
    {
        return Ok(observed);
    }
    let Some(observed) = api.get_opt(name).await? else {
        must_stay(work, &*cx.get().await?)?;
        let created = api.create(&written_by_us(), &kctl::from_json(desired)?).await?;
        return Ok(serde_json::to_value(created)?);
    };
    let observed = serde_json::to_value(observed)?;
    if observed["metadata"]["annotations"][WORK] != *work.name_any() {
        let text =
            format!("{} {name} already exists on {}: delete it there, or select other objects", kind.kind, M::NAME);
        return Err(text.into());
    }
    let desired = retained(rules, &observed, &desired).await?;
    if is_as_wanted(&observed, &desired) {
        return Ok(observed);
    }
    let updated = api.replace(name, &written_by_us(), &kctl::from_json(desired)?).await?;
    Ok(serde_json::to_value(updated)?)
}

/// A cache may begin with an old state. What is brought to a member for a work that is gone nobody takes off again.
fn must_stay(work: &Work, newest: &Work) -> Result<()> {
    if newest.metadata.uid == work.metadata.uid && newest.metadata.deletion_timestamp.is_none() {
        return Ok(());
    }
    Err(format!("work {} is about to leave, or is another one by now", work.name_any()).into())
}

/// What is wanted, with what is the member's to say.
async fn retained(rules: &Rules, observed: &Value, desired: &Value) -> Result<Value> {
    let retention = Retention { desired: desired.clone(), observed: observed.clone() };
    let mut retained = rules.ask::<Retain>(retention).await?.unwrap_or_else(|| desired.clone());
    for field in KEPT {
        if let Some(own) = observed["metadata"].get(field) {
            retained["metadata"][field] = own.clone();
        }
    }
    Ok(retained)
}

fn is_as_wanted(observed: &Value, desired: &Value) -> bool {
    let written = |object: &Value| object["metadata"]["annotations"][WRITTEN].clone();
    written(observed) == written(desired) && contains(observed, desired)
}

fn written_by_us() -> PostParams {
    PostParams { field_manager: Some(APP.into()), ..PostParams::default() }
}

/// Takes the object of a work off the member.
async fn remove<C, M>(there: &OnCluster<C, M>, kinds: &FoundKinds, work: &Work) -> Result<()>
where
    C: Executes<M>,
    M: Cluster,
{
    let namespace = work.namespace().unwrap_or_default();
    // What it has no kind of was never brought there, or went with the kind.
    let Some(api) = kinds.api(there.client(), &Gvk::of(&work.spec.manifest), &namespace).await? else { return Ok(()) };
    let Some(observed) = api.get_opt(name_of(work)).await? else { return Ok(()) };
    if observed.annotations().get(WORK) != Some(&work.name_any()) {
        return Ok(());
    }
    let exactly = Preconditions { uid: observed.uid(), resource_version: None };
    let delete = DeleteParams { preconditions: Some(exactly), ..DeleteParams::default() };
    match api.delete(name_of(work), &delete).await {
        Err(kctl::kube::Error::Api(refused)) if refused.code == 404 => Ok(()),
        Err(error) => Err(error.into()),
        Ok(_gone_or_going) => Ok(()),
    }
}

/// What is worth to be known of an object of a member. What its interpreters cannot read is said, and is no reason to hide that the
/// object is there.
async fn look(rules: &Rules, observed: &Value) -> WorkStatus {
    let (status, applied_message) = match rules.ask::<InterpretStatus>(Subject(observed.clone())).await {
        Ok(status) => (status, String::new()),
        Err(error) => (None, format!("its status cannot be read: {error}")),
    };
    // A kind whose health nobody can judge counts as healthy, as in Karmada.
    let health = match rules.ask::<InterpretHealth>(Subject(observed.clone())).await {
        Ok(Some(true) | None) => "Healthy",
        Ok(Some(false)) => "Unhealthy",
        Err(_) => "Unknown",
    };
    WorkStatus { applied: true, applied_message, status: status.filter(Value::is_object), health: health.into() }
}

fn name_of(work: &Work) -> &str {
    work.spec.manifest["metadata"]["name"].as_str().unwrap_or_default()
}

/// The work that an object of a member is from.
fn work_of(placed: &Stored) -> Option<Key<Work>> {
    let placed: PartialObjectMeta<Work> = serde_json::from_str(&placed.json()).ok()?;
    Some(Key::namespaced(&placed.namespace()?, placed.annotations().get(WORK)?))
}

/// FNV-1a: it stands in objects of members, where the next release of the program has to find the same.
fn hash(manifest: &Value) -> String {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    format!("{:016x}", manifest.to_string().bytes().fold(0xcbf2_9ce4_8422_2325, step))
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

fn works_of(_cluster: &MemberCluster, works: &Store<Work>) -> Vec<Key<Work>> {
    // The store has those of one cluster only.
    works.keys()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_of_a_manifest_is_the_same_in_every_release() {
        assert_eq!(hash(&kctl::json!({ "a": 1 })), "9c3e82dd6fcae8b1");
    }
}
