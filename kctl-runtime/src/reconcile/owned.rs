//! The objects that a primary owns: a snapshot to read and the operations to change them.

use std::{marker::PhantomData, sync::Arc};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::ResourceExt;

use super::{Allows, Env, Request, verb};
use crate::{
    effect::{ApiError, Target},
    object::{Object, Stored},
    source::Source,
    store::view,
};

/// The objects of kind `K` that the primary of a reconcile owns.
pub struct Owned<C: ?Sized, K, A> {
    env: Arc<Env>,
    primary: Arc<Stored>,
    source: Arc<Source>,
    live: Vec<Arc<K>>,
    terminating: Vec<Arc<K>>,
    grant: PhantomData<fn() -> (A, *const C)>,
}

impl<C: ?Sized, K: Object, A> Owned<C, K, A> {
    pub(crate) fn snapshot(env: Arc<Env>, primary: Arc<Stored>) -> Self {
        let source = env.source::<K>();
        let mut objects = source.store().owned_by(&primary.meta().uid);
        objects
            .retain(|object| object.meta().namespace == primary.meta().namespace || primary.meta().namespace.is_none());
        objects.sort_by(|a, b| {
            let (a, b) = (a.meta(), b.meta());
            (&a.creation_timestamp, &a.name).cmp(&(&b.creation_timestamp, &b.name))
        });
        let (terminating, live): (Vec<_>, Vec<_>) =
            objects.into_iter().partition(|object| object.meta().deletion_timestamp.is_some());
        Self {
            live: live.iter().filter_map(view).collect(),
            terminating: terminating.iter().filter_map(view).collect(),
            env,
            primary,
            source,
            grant: PhantomData,
        }
    }

    /// How many there are, without those that are being deleted.
    pub fn len(&self) -> usize {
        self.live.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.live.is_empty()
    }

    /// In order of creation, then of name.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Arc<K>> + ExactSizeIterator + use<C, K, A> {
        self.live.clone().into_iter()
    }

    /// Those that are being deleted.
    pub fn terminating(&self) -> impl DoubleEndedIterator<Item = Arc<K>> + ExactSizeIterator + use<C, K, A> {
        self.terminating.clone().into_iter()
    }

    /// Creates an object in the primary's namespace, with a controller reference to the primary.
    pub fn create(&self, object: K) -> Request<Arc<K>>
    where
        A: Allows<verb::create, C, K>,
    {
        let (env, primary, source) = self.parts();
        Request::new(async move {
            let object = adopt(object, &env, &primary)?;
            let name = object.name_any();
            let namespace = object.namespace();
            let target = Target { source: &source, namespace: namespace.as_deref(), name: &name };
            env.writer.create(&target, &object).await
        })
    }

    /// Replaces an object of the primary.
    pub fn update(&self, object: K) -> Request<Arc<K>>
    where
        A: Allows<verb::update, C, K>,
    {
        let (env, primary, source) = self.parts();
        Request::new(async move {
            check_owned("update", &object, &env, &primary)?;
            let (name, namespace) = (object.name_any(), object.namespace());
            let target = Target { source: &source, namespace: namespace.as_deref(), name: &name };
            env.writer.update(&target, &object).await
        })
    }

    /// Deletes an object of the primary: exactly this one, not a later one of its name.
    pub fn delete(&self, object: &K) -> Request<()>
    where
        A: Allows<verb::delete, C, K>,
    {
        let (env, primary, source) = self.parts();
        let object = object.clone();
        Request::new(async move {
            check_owned("delete", &object, &env, &primary)?;
            let (name, namespace) = (object.name_any(), object.namespace());
            let target = Target { source: &source, namespace: namespace.as_deref(), name: &name };
            env.writer.delete(&target, &object.uid().unwrap_or_default()).await
        })
    }

    fn parts(&self) -> (Arc<Env>, Arc<Stored>, Arc<Source>) {
        (self.env.clone(), self.primary.clone(), self.source.clone())
    }
}

impl<'a, C: ?Sized, K: Object, A> IntoIterator for &'a Owned<C, K, A> {
    type Item = &'a Arc<K>;
    type IntoIter = std::slice::Iter<'a, Arc<K>>;

    fn into_iter(self) -> Self::IntoIter {
        self.live.iter()
    }
}

/// Puts a new object into the primary's namespace and under its control.
fn adopt<K: Object>(mut object: K, env: &Env, primary: &Stored) -> Result<K, ApiError> {
    let kind = &env.spec.primary.kind;
    let controller = object.owner_references().iter().find(|owner| owner.controller == Some(true));
    if let Some(other) = controller.filter(|owner| owner.uid != primary.meta().uid) {
        return Err(foreign("create", &object, env, primary, Some(&other.name)));
    }
    if primary.meta().namespace.is_some() {
        object.meta_mut().namespace.clone_from(&primary.meta().namespace);
    }
    let references = object.owner_references_mut();
    references.retain(|owner| owner.uid != primary.meta().uid);
    references.push(OwnerReference {
        api_version: kind.api_version(),
        kind: kind.kind.clone(),
        name: primary.meta().name.clone(),
        uid: primary.meta().uid.clone(),
        controller: Some(true),
        block_owner_deletion: None,
    });
    Ok(object)
}

fn check_owned<K: Object>(verb: &str, object: &K, env: &Env, primary: &Stored) -> Result<(), ApiError> {
    let controller = object.owner_references().iter().find(|owner| owner.controller == Some(true));
    match controller {
        Some(owner) if owner.uid == primary.meta().uid => Ok(()),
        other => Err(foreign(verb, object, env, primary, other.map(|owner| owner.name.as_str()))),
    }
}

fn foreign<K: Object>(verb: &str, object: &K, env: &Env, primary: &Stored, other: Option<&str>) -> ApiError {
    let name = match object.namespace() {
        Some(namespace) => format!("{} {namespace}/{}", K::kind(&()), object.name_any()),
        None => format!("{} {}", K::kind(&()), object.name_any()),
    };
    ApiError::Foreign {
        operation: format!("{verb} {name}"),
        object: match other {
            Some(other) => format!("{name} (controlled by {other})"),
            None => name,
        },
        owner: format!("{} {}", env.spec.primary.kind, primary.key()),
    }
}
