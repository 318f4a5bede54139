//! Checks that a primary owns, by uid, each object of an owned kind that the app writes. Kinds that are also primaries,
//! or that another relation declares with verbs, are not checked. Owners are objects here, as in `ownerReferences`.

use std::collections::{BTreeMap, BTreeSet};

use kctl_apiserver::Change;
use kctl_runtime::{
    key::ObjectKey,
    object::Kind,
    spec::{ControllerSpec, RelationKind},
};
use serde_json::Value;

use super::snapshot::{Id, uid};

/// Cluster, group and plural.
pub(super) type Plural = (String, String, String);

/// The kinds that an app may write, and the uids of its primaries.
pub(super) struct Ownership {
    /// Kinds that a controller reconciles.
    pub(super) primaries: BTreeSet<Plural>,
    pub(super) owned: BTreeSet<Plural>,
    /// Kinds that a declaration allows to write although they are not owned.
    declared: BTreeSet<Plural>,
    /// All primaries that ever existed, by cluster and uid: the possible owners.
    owners: BTreeMap<(String, String), Id>,
}

impl Ownership {
    /// Reads the kinds from the declarations of an app. No primary is known yet.
    pub(super) fn from_specs(specs: &[ControllerSpec]) -> Self {
        let plural = |cluster: &str, kind: &Kind| (cluster.to_owned(), kind.group.clone(), kind.plural.clone());
        let relations = |owned: bool| {
            let relations = specs.iter().flat_map(|spec| spec.relations.iter().map(move |relation| (spec, relation)));
            relations.filter(move |(_, relation)| (relation.declared_as == RelationKind::Owned) == owned)
        };
        let others = relations(false).filter(|(_, relation)| !relation.verbs.is_empty());
        Self {
            primaries: specs.iter().map(|spec| plural(&spec.primary.cluster, &spec.primary.kind)).collect(),
            // Owner references can't cross clusters, so owned objects are on the cluster of their primary.
            owned: relations(true).map(|(spec, owned)| plural(&spec.primary.cluster, &owned.kind)).collect(),
            declared: others.map(|(_, relation)| plural(&relation.cluster, &relation.kind)).collect(),
            owners: BTreeMap::new(),
        }
    }

    /// Remembers a primary until the end of the run, because its owned objects outlive it until garbage collection.
    pub(super) fn record_change(&mut self, id: &Id, change: &Change) {
        if let Some(object) = &change.after
            && self.primaries.contains(&plural(id))
        {
            self.owners.insert((id.cluster.clone(), uid(object).into()), id.clone());
        }
    }

    /// Returns the key of a primary that a request names; `None` for objects of other kinds. The resource may have a
    /// subresource.
    pub(super) fn key_of_primary(&self, id: &Id) -> Option<String> {
        let resource = id.resource.split('/').next().unwrap_or_default();
        let plural = (id.cluster.clone(), id.group.clone(), resource.to_owned());
        let namespace = Some(id.namespace.as_str()).filter(|namespace| !namespace.is_empty());
        let is_named = self.primaries.contains(&plural) && !id.name.is_empty();
        is_named.then(|| ObjectKey::new(namespace, &id.name).to_string())
    }

    /// Checks a change by the app. An error describes what is wrong with it.
    ///
    /// Only objects of owned kinds are checked: on others the role allows exactly what is declared.
    pub(super) fn check(&self, id: &Id, change: &Change) -> Result<(), String> {
        let plural = plural(id);
        if !self.owned.contains(&plural) || self.declared.contains(&plural) || self.primaries.contains(&plural) {
            return Ok(());
        }
        let owned = |object: &Value| {
            let references = object["metadata"]["ownerReferences"].as_array();
            references.into_iter().flatten().any(|reference| self.owns(&id.cluster, reference))
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
        Err(format!("{verb} {id}, but {shown}"))
    }

    /// Returns `true` if an owner reference names a primary by uid and name.
    fn owns(&self, cluster: &str, reference: &Value) -> bool {
        let text = |field: &str| reference[field].as_str().unwrap_or_default();
        let owner = self.owners.get(&(cluster.to_owned(), text("uid").to_owned()));
        owner.is_some_and(|id| id.name == text("name"))
    }
}

fn plural(id: &Id) -> Plural {
    (id.cluster.clone(), id.group.clone(), id.resource.clone())
}
