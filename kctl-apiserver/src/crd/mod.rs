//! Custom resources: validates a `CustomResourceDefinition`, and prunes, defaults and validates objects against its
//! schema. Returns field errors.
//!
//! A CRD is defaulted (`default_definition`) and validated (`validate_definition`) before it is stored. Its names are
//! accepted afterwards (`accept_names`), and it is served once it is established (`establish`). A custom object is
//! pruned (`prune`) when it is decoded, then defaulted (`default`), validated against the schema (`validate`) and by
//! the CEL rules (`Rules`).
//!
//! Everything here is a pure function of JSON, without storage, clock or network. The caller passes the time and the
//! other CRDs. `kinds/apiextensions` and `controllers/definitions` use it for CRDs, `write` and `registry` for custom
//! objects.
//!
//! | step | functions |
//! |---|---|
//! | names and conditions of a CRD | `accepted`, `approved`, `bundle` |
//! | validation of a CRD | `definition_rules`, `structural`, `keywords`, `rule_validation`, `estimate`, `selectable` |
//! | an object against the schema | `prune`, `default`, `validate`, `lists`, `number`, `embedded`, `replicas` |
//! | CEL rules on an object | `rules`, `typed`, `correlation`, `field_path` |
//!
//! Reason and path of each error are the same as in kube-apiserver; the detail of a message may differ in wording.

mod accepted;
mod approved;
mod bundle;
mod correlation;
mod default;
mod default_values;
mod definition;
mod definition_rules;
mod embedded;
mod error_limit;
mod estimate;
mod field_path;
pub(crate) mod formats;
mod keywords;
mod lists;
mod normalize;
mod number;
mod prune;
pub(crate) mod replicas;
mod rule_validation;
mod rules;
mod selectable;
mod structural;
mod typed;
mod validate;

pub(crate) use accepted::{
    GrantedNames, accept_names, establish, is_ending, is_established, mark_deletion_completed,
    mark_deletion_in_progress, mark_deletion_pending, may_be_established, names_accepted, rejects_creates,
};
pub(crate) use approved::{has_current_approval_condition, set_approval_condition};
pub(crate) use default::{default, default_with_nulls};
pub(crate) use definition::{default_definition, default_definition_spec};
pub(crate) use definition_rules::{validate_change_of_definition, validate_definition, validate_definition_status};
pub(crate) use embedded::{fit_embedded, normalize_embedded};
pub(crate) use prune::prune;
pub(crate) use rules::Rules;
pub(crate) use validate::{validate, validate_status};

#[cfg(test)]
mod tests;
