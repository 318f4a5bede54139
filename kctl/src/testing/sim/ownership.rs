//! Whether a write of the app is one that its declarations allow: on what it owns by uid, its primaries, and declared kinds.

use std::collections::{BTreeMap, BTreeSet};

use kctl_apiserver::Change;
use kctl_runtime::{
    object::Kind,
    spec::{ControllerSpec, Role},
};
use serde_json::Value;

use super::snapshot::{Id, uid};

type Plural = (String, String);

/// Which kinds are owned, and which uids own.
pub(super) struct Ownership {
    pub(super) primaries: BTreeSet<Plural>,
    pub(super) owned: BTreeSet<Plural>,
    /// Written although they are not owned, by declaration.
    declared: BTreeSet<Plural>,
    /// All primaries that ever were, by uid.
    owners: BTreeMap<String, Id>,
}

impl Ownership {
    pub(super) fn of(specs: &[ControllerSpec]) -> Self {
        let plural = |kind: &Kind| (kind.group.clone(), kind.plural.clone());
        let relations = || specs.iter().flat_map(|spec| &spec.relations).filter(|relation| relation.cluster.is_empty());
        let others = relations().filter(|relation| relation.role != Role::Owned && !relation.verbs.is_empty());
        Self {
            primaries: specs.iter().map(|spec| plural(&spec.primary.kind)).collect(),
            owned: relations().filter(|relation| relation.role == Role::Owned).map(|r| plural(&r.kind)).collect(),
            declared: others.map(|relation| plural(&relation.kind)).collect(),
            owners: BTreeMap::new(),
        }
    }

    /// Remembers primaries.
    pub(super) fn learn(&mut self, change: &Change) {
        if let Some(object) = &change.after
            && self.primaries.contains(&(change.group.clone(), change.resource.clone()))
        {
            self.owners.insert(uid(object).into(), Id::of(change));
        }
    }

    /// Checks a change by the app.
    pub(super) fn check(&self, change: &Change) -> Result<(), String> {
        let plural = (change.group.clone(), change.resource.clone());
        if !self.owned.contains(&plural) || self.declared.contains(&plural) || self.primaries.contains(&plural) {
            // Of other kinds the role allows what is declared, and nothing else.
            return Ok(());
        }
        let owned = |object: &Value| {
            let references = object["metadata"]["ownerReferences"].as_array();
            references.into_iter().flatten().any(|reference| self.owns(reference))
        };
        let states = [change.before.as_deref(), change.after.as_deref()];
        if states.into_iter().flatten().any(owned) {
            return Ok(());
        }
        let references = states.into_iter().flatten().next_back().map(|object| &object["metadata"]["ownerReferences"]);
        let shown = match references {
            Some(Value::Null) | None => "it has no owner references".into(),
            Some(references) => format!("its owner references name no primary by its uid: {references}"),
        };
        let verb = match (&change.before, &change.after) {
            (None, _) => "creates",
            (_, None) => "deletes",
            _ => "changes",
        };
        Err(format!("the app {verb} {}, but {shown}", Id::of(change)))
    }

    fn owns(&self, reference: &Value) -> bool {
        let text = |field: &str| reference[field].as_str().unwrap_or_default();
        self.owners.get(text("uid")).is_some_and(|id| id.name == text("name"))
    }
}
