//! Explains to a person why this replica reconciles a key or does not, by the state of the key's slot.

use crate::{key::ObjectKey, shard::Phase};

/// The slot of a key, as one replica sees it, and why this replica reconciles the key or does not.
///
/// [`ShardView::explain`](super::ShardView::explain) returns it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct KeyExplanation {
    /// The number of the slot.
    pub slot: u32,
    /// The holder of its Lease; empty if it is free, expired, not known yet, or of replicas with other settings.
    pub owner: String,
    /// The state of the slot in this replica: `owned`, `waiting`, `handing over` or `other`.
    pub state: String,
    /// The reason, for a person.
    pub reason: String,
}

/// The holder of a slot's Lease, as one replica sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SlotOwner<'a> {
    /// The Leases can't be read, for this reason.
    Unreadable(&'a str),
    /// The Leases have not been listed yet.
    NotListed,
    /// The Lease is free or has expired.
    Vacant,
    /// The Lease is missing, but counts as held: its owner may still be at work.
    Unknown,
    /// The Lease counts as held by this process, which has not released it: a person has edited it, or a backup was
    /// restored.
    Former(&'a str),
    /// The Lease is held by this process.
    ThisReplica,
    /// The Lease is held by another process.
    Other(&'a str),
}

/// Returns what this replica does with a key, and why. Pure.
pub(super) fn reason(key: &ObjectKey, slot: u32, phase: Phase, owner: SlotOwner<'_>) -> String {
    let why: String = match (phase, owner) {
        (Phase::Owned, _) => {
            "This replica owns it, so its controllers reconcile the key once their caches are complete.".into()
        }
        (Phase::HandingOver, _) => {
            "This replica hands it over: running reconciles finish, and no further one begins here.".into()
        }
        (Phase::Waiting | Phase::Other, SlotOwner::Unreadable(failure)) => {
            format!("This replica does not know its owner, because it cannot read the Leases: {failure}.")
        }
        (Phase::Waiting, SlotOwner::Other(owner)) => {
            format!("This replica waits for {owner} to hand it over, or for its Lease to expire.")
        }
        (Phase::Waiting, SlotOwner::Unknown) => {
            "This replica takes it after a Lease duration: its Lease is missing, and an owner may be at work.".into()
        }
        (Phase::Waiting, SlotOwner::Former(former)) => format!(
            "This replica takes it after a Lease duration: its Lease was changed without a release, and {former} may be at \
             work."
        ),
        (Phase::Waiting, SlotOwner::NotListed | SlotOwner::Vacant | SlotOwner::ThisReplica) => {
            "This replica is about to take it, and reconciles the key then.".into()
        }
        (Phase::Other, SlotOwner::Other(owner)) => {
            format!("Its owner is {owner}, so this replica does not reconcile it.")
        }
        (Phase::Other, SlotOwner::Unknown) => {
            "Its Lease is missing, and an owner may be at work, so no replica takes it for a Lease duration.".into()
        }
        (Phase::Other, SlotOwner::Former(former)) => format!(
            "Its Lease was changed without a release, and {former} may be at work, so no replica takes it for a Lease \
             duration."
        ),
        (Phase::Other, SlotOwner::Vacant) => {
            "It has no owner: no replica reconciles the key until one takes the slot.".into()
        }
        (Phase::Other, SlotOwner::NotListed) => {
            "This replica does not know its owner, because it has not listed the Leases yet.".into()
        }
        (Phase::Other, SlotOwner::ThisReplica) => {
            "This replica has given it up, and its Lease is free once it is released or has expired.".into()
        }
    };
    format!("{key} is in slot {slot}. {why}")
}

/// Returns a sentence about the controllers that do not work on an owned slot yet; empty without such controllers.
pub(super) fn reason_of_closed(controllers: &[&str]) -> String {
    match controllers {
        [] => String::new(),
        [one] => format!(" {one} waits for the list of its objects."),
        many => format!(" {} wait for the list of its objects.", many.join(" and ")),
    }
}

/// Returns why no replica reconciles a key in a namespace that the program does not watch.
pub(super) fn reason_of_unwatched(key: &ObjectKey, slot: u32) -> String {
    let namespace = key.namespace.as_deref().unwrap_or_default();
    format!(
        "{key} is in slot {slot}, but namespace {namespace} is not watched here: --namespace. Stop all replicas, then start \
         them with it, or without --namespace."
    )
}

/// Returns why a replica reconciles no key while others hold the Lease of the settings with their own.
pub(super) fn reason_of_rejected(key: &ObjectKey, disagreement: &str) -> String {
    format!(
        "This replica does not reconcile {key}, nor any other key: {disagreement}. If no other replica runs, the Lease of the \
         settings expires."
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(phase: Phase, owner: SlotOwner<'_>, expected: &str) {
        let found = reason(&ObjectKey::new(Some("default"), "blog"), 7, phase, owner);
        assert_eq!(found, format!("default/blog is in slot 7. {expected}"), "{phase:?}, {owner:?}");
    }

    #[test]
    fn slot_of_this_replica_is_explained() {
        let owned = "This replica owns it, so its controllers reconcile the key once their caches are complete.";
        let handed_over = "This replica hands it over: running reconciles finish, and no further one begins here.";
        for owner in [SlotOwner::ThisReplica, SlotOwner::Vacant, SlotOwner::Unknown] {
            check(Phase::Owned, owner, owned);
            check(Phase::HandingOver, owner, handed_over);
        }
    }

    #[test]
    fn controllers_that_wait_for_a_slot_are_named() {
        let cases: [(&[&str], &str); 3] = [
            (&[], ""),
            (&["podset"], " podset waits for the list of its objects."),
            (&["podset", "backup"], " podset and backup wait for the list of its objects."),
        ];
        for (controllers, expected) in cases {
            assert_eq!(reason_of_closed(controllers), expected);
        }
    }

    #[test]
    fn slot_that_is_awaited_is_explained() {
        let other = "This replica waits for web-1 to hand it over, or for its Lease to expire.";
        check(Phase::Waiting, SlotOwner::Other("web-1"), other);
        let unknown =
            "This replica takes it after a Lease duration: its Lease is missing, and an owner may be at work.";
        check(Phase::Waiting, SlotOwner::Unknown, unknown);
        let former = "This replica takes it after a Lease duration: its Lease was changed without a release, and web-1 may be \
                      at work.";
        check(Phase::Waiting, SlotOwner::Former("web-1"), former);
        for owner in [SlotOwner::Vacant, SlotOwner::ThisReplica] {
            check(Phase::Waiting, owner, "This replica is about to take it, and reconciles the key then.");
        }
    }

    #[test]
    fn slot_of_no_or_another_replica_is_explained() {
        let cases = [
            (
                SlotOwner::Unreadable("403 Forbidden"),
                "This replica does not know its owner, because it cannot read the Leases: 403 Forbidden.",
            ),
            (SlotOwner::Other("web-1"), "Its owner is web-1, so this replica does not reconcile it."),
            (
                SlotOwner::Unknown,
                "Its Lease is missing, and an owner may be at work, so no replica takes it for a Lease duration.",
            ),
            (
                SlotOwner::Former("web-1"),
                "Its Lease was changed without a release, and web-1 may be at work, so no replica takes it for a Lease duration.",
            ),
            (SlotOwner::Vacant, "It has no owner: no replica reconciles the key until one takes the slot."),
            (SlotOwner::NotListed, "This replica does not know its owner, because it has not listed the Leases yet."),
            (
                SlotOwner::ThisReplica,
                "This replica has given it up, and its Lease is free once it is released or has expired.",
            ),
        ];
        for (owner, expected) in cases {
            check(Phase::Other, owner, expected);
        }
    }

    #[test]
    fn cluster_scoped_key_is_named_without_namespace() {
        let found = reason(&ObjectKey::new(None, "node-1"), 0, Phase::Other, SlotOwner::Vacant);
        assert!(found.starts_with("node-1 is in slot 0. It has no owner"), "{found}");
    }
}
