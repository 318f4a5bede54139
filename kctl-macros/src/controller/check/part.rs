//! The part of an object that is cached: the whole, its metadata (`metadata`), or a view of it (`as = View`).
//! Mistakes are K0049.

use syn::Type;

use super::super::model::{Part, Relation, RelationKind};
use crate::{
    codes,
    diagnostics::Errors,
    function::{compact_text, generic_argument, type_text},
};

/// The flag of a kind that is cached by its metadata alone.
pub(super) const METADATA: &str = "metadata";

impl Part {
    /// Sets the part of a relation. K0022 if it has one already.
    pub(super) fn set(&mut self, part: Self, errors: &mut Errors) {
        let what = "a kind is cached in one form: `metadata` or `as = View`";
        match (&self, &part) {
            (Self::Whole, _) => *self = part,
            (_, Self::Metadata(word)) => errors.push(word, codes::DUPLICATE, what, "remove one of them"),
            (_, Self::View(word, _)) => errors.push(word, codes::DUPLICATE, what, "remove one of them"),
            (_, Self::Whole) => {}
        }
    }
}

/// Reports `reads = PartialObjectMeta<Kind>`: metadata is declared with its kind, as `reads = Kind(metadata)`,
/// because the role names the kind. Returns `true` for an error.
pub(super) fn report_metadata_type(declared_as: RelationKind, named: &Type, errors: &mut Errors) -> bool {
    let Some(whole) = generic_argument(named, "PartialObjectMeta").map(compact_text) else { return false };
    let help =
        format!("write `{} = {whole}({METADATA})`; it is read as `PartialObjectMeta<{whole}>`", declared_as.as_str());
    errors.push(
        named,
        codes::PART_OF_AN_OBJECT,
        &format!("the metadata of `{whole}` is declared with `{whole}`"),
        &help,
    );
    true
}

/// Checks that the part fits the relation. A kind that is read live has no cache. An owned kind can't be a view,
/// because `converge` compares whole objects. With its metadata alone it can be applied and deleted, but neither
/// created nor updated.
pub(super) fn check_part(relation: &Relation, errors: &mut Errors) {
    let kind = type_text(&relation.kind);
    if relation.declared_as.is_live() {
        let what = format!("`{kind}` is read live and has no cache: `metadata` and `as` have no effect");
        let help = "remove `live`, or `metadata` or `as`";
        match &relation.part {
            Part::Whole => {}
            Part::Metadata(word) => errors.push(word, codes::PART_OF_AN_OBJECT, &what, help),
            Part::View(word, _) => errors.push(word, codes::PART_OF_AN_OBJECT, &what, help),
        }
    }
    if relation.declared_as == RelationKind::Owns {
        match &relation.part {
            Part::Whole => {}
            Part::View(word, _) => {
                let what = format!(
                    "an owned kind can't be a view: `converge` compares whole objects, and a view of `{kind}` has only some of its fields"
                );
                let help = format!(
                    "write `owns = {kind}`, or `owns = {kind}(metadata)` to apply and delete it by its metadata alone"
                );
                errors.push(word, codes::PART_OF_AN_OBJECT, &what, &help);
            }
            Part::Metadata(_) => {
                for declared in relation.verbs.iter().filter(|declared| declared.verb.sends_whole_object()) {
                    let verb = &declared.word;
                    let what = format!("`{verb}` needs a whole `{kind}`, not its metadata alone");
                    let help = format!("write `owns = {kind}(metadata, apply)`, and give the whole object to `apply`");
                    errors.push(verb, codes::PART_OF_AN_OBJECT, &what, &help);
                }
            }
        }
    }
}
