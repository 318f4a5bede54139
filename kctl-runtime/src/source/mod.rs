//! API server → deltas: lists and watches one informer identity and hands deltas on to its store.

mod anew;
mod check;
mod condition;
mod current;
mod driver;
mod event;
mod items;
mod lines;
mod pages;
mod places;
mod reflector;
#[cfg(test)]
mod reflector_model;
mod scopes;
mod spread;
mod unreadable;

pub use check::Check;
pub use condition::Health;
pub(crate) use current::Present;
pub use driver::Source;
pub use places::Places;
pub use reflector::{Effect, Input, Reflector, Request};
pub use unreadable::UNREADABLE_MAX;
pub(crate) use unreadable::Unreadable;

use std::hash::{Hash, Hasher};

use kube::Resource;

use crate::object::Kind;

/// Objects asked for in one page, as client-go does.
pub const PAGE_LEN: u32 = 500;

/// Lists as metadata alone. A server that has no such form answers whole objects.
const METADATA_LIST: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json";
/// The same for watches.
const METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json";

/// The way a program handles a kind that the API server does not serve.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Presence {
    /// Nothing works until the kind is there: its cache is not complete before.
    #[default]
    Required,
    /// A kind that is not served has an empty, complete cache; once it is served it is listed and watched.
    Optional,
}

/// The hash of an identity seeds the jitter of its requests: that of a required kind is what it was before there were optional ones, or
/// recorded seeds of simulations would mean other runs.
impl Hash for Presence {
    fn hash<H: Hasher>(&self, state: &mut H) {
        if *self == Self::Optional {
            state.write_u8(1);
        }
    }
}

/// The kind, namespaces and selectors of an informer. Users with equal identities share one list and one watch.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Identity {
    /// Name of the cluster; empty is the one that the program was started against.
    pub cluster: String,
    /// The kind.
    pub kind: Kind,
    /// Namespaces; none is all.
    pub namespaces: Vec<String>,
    /// Label selector; empty selects all.
    pub labels: String,
    /// Field selector; empty selects all.
    pub fields: String,
    /// Whether its users wait for a kind that is not there: those who do share nothing with those who do not.
    pub presence: Presence,
}

impl Identity {
    /// All objects of a kind.
    pub fn all(kind: Kind) -> Self {
        Self {
            cluster: String::new(),
            kind,
            namespaces: Vec::new(),
            labels: String::new(),
            fields: String::new(),
            presence: Presence::Required,
        }
    }

    /// All objects of a type's kind.
    pub fn of<K: Resource<DynamicType = ()>>() -> Self {
        Self::all(Kind::of::<K>())
    }

    /// Those in these namespaces alone; none is all.
    #[must_use]
    pub fn in_namespaces<S: Into<String>>(mut self, namespaces: impl IntoIterator<Item = S>) -> Self {
        self.namespaces = namespaces.into_iter().map(Into::into).collect();
        self
    }

    /// Those with these labels alone: a selector as `kubectl -l` takes it.
    #[must_use]
    pub fn labels(mut self, selector: impl Into<String>) -> Self {
        self.labels = selector.into();
        self
    }

    /// Those with these fields alone, as `kubectl --field-selector` takes it.
    #[must_use]
    pub fn fields(mut self, selector: impl Into<String>) -> Self {
        self.fields = selector.into();
        self
    }

    /// Those of a kind that need not be there: as long as the API server does not serve it, its cache is empty and complete.
    #[must_use]
    pub fn optional(mut self) -> Self {
        self.presence = Presence::Optional;
        self
    }

    /// Those in another cluster.
    #[must_use]
    pub fn on(mut self, cluster: impl Into<String>) -> Self {
        self.cluster = cluster.into();
        self
    }
}
