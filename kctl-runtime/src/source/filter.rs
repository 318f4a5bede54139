//! Filters the objects of a kind before they are decoded: a replica of a sharded program keeps only the objects of its
//! slots.
//!
//! A filter is a selector that the client evaluates. An object that it does not select is absent from lists, and an
//! object that ceases to be selected leaves the cache as a deletion. The metadata decides, and it is read without
//! the rest of the object.
//!
//! The selection changes when slots move. A list during which a slot was gained lacks some of its objects, so it is
//! requested again ([`Source::state`](super::Source), [`Source::run`](super::Source::run)). The list for gained slots is
//! the exception ([`Source::compare`](super::Source::compare)): it is kept, and the next comparison lists for the further
//! slot. Objects of a slot that was lost in between are dropped with the slot.

use std::{
    borrow::Cow,
    fmt,
    sync::{Arc, atomic::AtomicU64},
};

use serde::{
    Deserialize, Deserializer,
    de::{self, IgnoredAny, MapAccess, Visitor},
};

use super::selection_state::ServerSelection;
use crate::{
    key::ObjectKey,
    object::{Kind, Stored},
    store::{Part, Primaries, Share},
};

/// The rule that assigns an object to a primary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum BelongsTo {
    /// The object is a primary.
    Itself {
        /// `true` if the primary has a namespace.
        namespaced: bool,
    },
    /// The object belongs to its controller, if that is of this kind.
    Controller {
        kind: Kind,
        /// `true` if the primary has a namespace, which is also the object's.
        namespaced: bool,
    },
}

/// A bug in the cache of a sharded program, which the simulator has to find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CacheBug {
    /// The selected objects belong to slots that this replica does not own.
    AnotherHash,
    /// A list for gained slots is ignored if the watch is past it.
    OvertakenListIgnored,
    /// A watch of the old slots continues after slots have moved, although the API server selects its objects.
    WatchKept,
}

/// Selects the objects that belong to the primaries of this replica's slots.
pub(crate) struct Filter {
    share: Arc<dyn Share>,
    rules: Vec<BelongsTo>,
    is_selectable: bool,
    pub(super) bug: Option<CacheBug>,
    pub(super) selection: ServerSelection,
}

/// The part of the metadata that decides if an object is selected.
#[derive(Deserialize, Default, Debug, PartialEq)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct ObjectHead<'a> {
    #[serde(borrow)]
    pub(super) name: Cow<'a, str>,
    #[serde(borrow)]
    pub(super) namespace: Cow<'a, str>,
    #[serde(borrow)]
    pub(super) uid: Cow<'a, str>,
    #[serde(borrow)]
    pub(super) resource_version: Cow<'a, str>,
    #[serde(borrow)]
    owner_references: Option<Vec<OwnerHead<'a>>>,
}

#[derive(Deserialize, Default, Debug, PartialEq)]
#[serde(rename_all = "camelCase", default)]
struct OwnerHead<'a> {
    #[serde(borrow)]
    api_version: Cow<'a, str>,
    #[serde(borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    name: Cow<'a, str>,
    controller: Option<bool>,
}

/// The group, kind and name of a controller.
struct Controller<'a> {
    group: &'a str,
    kind: &'a str,
    name: &'a str,
}

impl Filter {
    /// Creates a filter that selects what one of the rules assigns to a slot of `share`.
    pub(crate) fn new(share: Arc<dyn Share>, rules: Vec<BelongsTo>, bug: Option<CacheBug>) -> Self {
        let is_namespaced = |rule: &BelongsTo| match rule {
            BelongsTo::Itself { namespaced } | BelongsTo::Controller { namespaced, .. } => *namespaced,
        };
        // An API server hashes the namespace of an object. Objects without one, or of a primary without one, belong to the
        // slot of a name.
        let is_selectable = rules.iter().all(is_namespaced) && share.shard_selector().is_some();
        Self { share, rules, is_selectable, bug, selection: ServerSelection::default() }
    }

    /// Returns `true` if the API server can select the objects.
    pub(super) fn is_selectable(&self) -> bool {
        self.is_selectable
    }

    /// Returns how many slots were gained so far.
    pub(super) fn n_gained(&self) -> u64 {
        self.share.n_gained()
    }

    /// Returns the `shardSelector` with which the API server selects at least these objects, `None` if it can't.
    pub(super) fn shard_selector(&self) -> Option<String> {
        self.is_selectable.then(|| self.share.shard_selector())?
    }

    /// Returns how often a slot was gained or lost so far.
    pub(super) fn n_moves(&self) -> u64 {
        self.share.n_moves()
    }

    /// Returns `true` if no object is selected, because this replica owns no slot.
    pub(super) fn selects_nothing(&self) -> bool {
        self.share.is_empty()
    }

    /// Returns the part of the kind that readers find in the cache.
    ///
    /// `listed` is the number of gained slots at the last list.
    pub(super) fn part(&self, listed: &Arc<AtomicU64>) -> Part {
        if self.rules.iter().any(|rule| matches!(rule, BelongsTo::Itself { .. })) {
            Part::Primaries(Primaries::new(self.share.clone(), listed.clone()))
        } else {
            Part::Children
        }
    }

    /// Returns the metadata of an object that is not selected. JSON without readable metadata is left to the decoder.
    pub(super) fn not_selected<'a>(&self, json: &'a str) -> Option<ObjectHead<'a>> {
        let head = ObjectHead::read(json).filter(|head| !head.name.is_empty())?;
        let owners = head.owner_references.iter().flatten();
        let mut controllers = owners.filter(|owner| owner.controller == Some(true)).map(|owner| Controller {
            group: owner.api_version.rsplit_once('/').map_or("", |(group, _)| group),
            kind: &owner.kind,
            name: &owner.name,
        });
        let is_selected = self.selects(&head.key(), controllers.next().as_ref());
        (!is_selected).then_some(head)
    }

    /// Returns `true` if an object of the cache is selected now.
    pub(super) fn has(&self, object: &Stored) -> bool {
        let controller = object.meta().controller();
        let controller =
            controller.map(|owner| Controller { group: owner.group(), kind: &owner.kind, name: &owner.name });
        self.selects(object.key(), controller.as_ref())
    }

    fn selects(&self, key: &ObjectKey, controller: Option<&Controller<'_>>) -> bool {
        self.rules.iter().any(|rule| match (rule, controller) {
            (BelongsTo::Itself { .. }, _) => self.has_primary(key),
            (BelongsTo::Controller { kind, namespaced }, Some(owner)) => {
                let namespace = key.namespace.as_deref().filter(|_| *namespaced);
                let is_primary = owner.group == kind.group && owner.kind == kind.kind;
                is_primary && self.has_primary(&ObjectKey::new(namespace, owner.name))
            }
            (BelongsTo::Controller { .. }, None) => false,
        })
    }

    /// Returns `true` if a primary belongs to a slot of this replica.
    fn has_primary(&self, key: &ObjectKey) -> bool {
        if self.bug == Some(CacheBug::AnotherHash) {
            let namespace = key.namespace.as_ref().map(|namespace| format!("{namespace}-x"));
            return self.share.has(&ObjectKey::new(namespace.as_deref(), &format!("{}-x", key.name)));
        }
        self.share.has(key)
    }
}

impl<'a> ObjectHead<'a> {
    /// Reads `metadata`, and nothing that follows it: API servers send it before `spec` and `status`.
    fn read(json: &'a str) -> Option<Self> {
        let mut head = None;
        // The visitor stops with an error once it has the metadata.
        let _stopped = serde_json::Deserializer::from_str(json).deserialize_map(UntilMetadata(&mut head));
        head
    }

    /// Returns namespace and name.
    pub(super) fn key(&self) -> ObjectKey {
        ObjectKey::new(Some(&*self.namespace).filter(|namespace| !namespace.is_empty()), &self.name)
    }
}

struct UntilMetadata<'a, 'h>(&'h mut Option<ObjectHead<'a>>);

#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "lowercase")]
enum Member {
    Metadata,
    #[serde(other)]
    Other,
}

impl<'de> Visitor<'de> for UntilMetadata<'de, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        while let Some(member) = members.next_key()? {
            match member {
                Member::Metadata => {
                    *self.0 = Some(members.next_value()?);
                    return Err(de::Error::custom("the rest is not needed"));
                }
                Member::Other => drop(members.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::{apps::v1::ReplicaSet, core::v1::Pod};

    use super::*;

    /// A replica that owns the keys with an even last digit.
    struct Even;

    impl Share for Even {
        fn has(&self, key: &ObjectKey) -> bool {
            key.name.bytes().last().is_some_and(|digit| digit % 2 == 0)
        }

        fn has_namespace(&self, _namespace: &str) -> bool {
            false
        }

        fn is_empty(&self) -> bool {
            false
        }

        fn n_gained(&self) -> u64 {
            0
        }
    }

    fn pod(name: &str, owner: Option<(&str, &str, &str)>) -> String {
        let owners = owner.map(|(version, kind, name)| {
            format!(
                r#","ownerReferences":[{{"apiVersion":"v1","kind":"Node","name":"n-2","uid":"n"}},
                {{"apiVersion":"{version}","kind":"{kind}","name":"{name}","uid":"u","controller":true}}]"#
            )
        });
        let owners = owners.unwrap_or_default();
        format!(r#"{{"kind":"Pod","metadata":{{"namespace":"shop","name":"{name}"{owners}}},"spec":{{}}}}"#)
    }

    #[test]
    fn controller_reference_of_any_version_selects_the_child() {
        let rule = BelongsTo::Controller { kind: Kind::of::<ReplicaSet>(), namespaced: true };
        let filter = Filter::new(Arc::new(Even), vec![rule], None);
        for (owner, selected) in [
            (Some(("apps/v1", "ReplicaSet", "web-2")), true),
            (Some(("apps/v1beta1", "ReplicaSet", "web-2")), true),
            (Some(("apps/v1", "ReplicaSet", "web-1")), false),
            (Some(("apps/v1", "StatefulSet", "web-2")), false),
            (Some(("example.com/v1", "ReplicaSet", "web-2")), false),
            (None, false),
        ] {
            let json = pod("web-2-a", owner);
            assert_eq!(filter.not_selected(&json).is_none(), selected, "{owner:?}");
            assert_eq!(filter.has(&Stored::accept(&Kind::of::<Pod>(), &json).unwrap()), selected, "{owner:?}");
        }
    }

    #[test]
    fn primary_is_selected_by_its_own_key() {
        let filter = Filter::new(Arc::new(Even), vec![BelongsTo::Itself { namespaced: true }], None);
        assert!(filter.not_selected(&pod("web-2", None)).is_none());
        let json = pod("web-1", None);
        assert_eq!(filter.not_selected(&json).unwrap().key(), ObjectKey::new(Some("shop"), "web-1"));
    }

    #[test]
    fn metadata_is_read_without_what_follows_it() {
        let head =
            ObjectHead::read(r#"{"metadata":{"name":"a","resourceVersion":"7","labels":{}},"spec":not even JSON"#);
        let head = head.unwrap();
        assert_eq!((&*head.name, &*head.resource_version), ("a", "7"));
        let last =
            ObjectHead::read(r#"{"spec":{"metadata":{"name":"b"}},"metadata":{"name":"a","ownerReferences":null}}"#);
        assert_eq!(last.unwrap().name, "a");
        for unreadable in ["", "[]", "{}", r#"{"metadata":3}"#, r#"{"metadata":{"name":"#] {
            assert_eq!(ObjectHead::read(unreadable), None, "{unreadable}");
        }
    }
}
