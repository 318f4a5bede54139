//! Decides which caches of a sharded program have only the objects of this replica's slots.
//!
//! A kind is filtered if all its readers need only the objects of the primaries that they reconcile: the primaries
//! themselves, and kinds that are only owned. A kind that a controller reads, watches with a mapper, or that is in
//! another cluster than the primary is cached whole, as are kinds of
//! [`Manager::cache_whole`](crate::manager::Manager::cache_whole).

use std::sync::Arc;

use crate::{
    declaration::{RelationKind, RelationSpec},
    object::Kind,
    reconcile::Env,
    shard::Tenures,
    source::{BelongsTo, CacheBug, Filter, Source},
};

/// A cache, and the rules that assign its objects to primaries. `None` if a reader needs all objects.
type Use = (Arc<Source>, Option<Vec<BelongsTo>>);

/// Limits the caches of these controllers to the slots of this replica where their readers allow it.
pub(super) fn limit<'a>(
    envs: impl Iterator<Item = &'a Arc<Env>>,
    tenures: &Arc<Tenures>,
    whole: &[Kind],
    bug: Option<CacheBug>,
) {
    let mut uses: Vec<Use> = Vec::new();
    for env in envs {
        let primary = &env.spec.primary;
        let related = env.sources.iter().map(|(relation, source)| (relation, source));
        for (relation, source) in std::iter::once((primary, &env.primary)).chain(related) {
            let rule = rule(relation, primary).filter(|_| !whole.contains(&relation.kind));
            let known = uses.iter().position(|(known, _)| Arc::ptr_eq(known, source));
            let index = known.unwrap_or_else(|| {
                uses.push((source.clone(), Some(Vec::new())));
                uses.len() - 1
            });
            let rules = &mut uses[index].1;
            match (rules.as_mut(), rule) {
                (Some(rules), Some(rule)) => rules.push(rule),
                _ => *rules = None,
            }
        }
    }
    for (source, rules) in uses {
        if let Some(rules) = rules {
            source.select(Filter::new(tenures.clone(), rules, bug));
        }
    }
}

/// Returns the rule that assigns objects of a relation to primaries, `None` if all of them are needed.
fn rule(relation: &RelationSpec, primary: &RelationSpec) -> Option<BelongsTo> {
    if relation.cluster != primary.cluster || relation.map.is_some() {
        return None;
    }
    match relation.declared_as {
        RelationKind::Primary => Some(BelongsTo::Itself { namespaced: primary.namespaced }),
        RelationKind::Owned => {
            Some(BelongsTo::Controller { kind: primary.kind.clone(), namespaced: primary.namespaced })
        }
        _ => None,
    }
}
