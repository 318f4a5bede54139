//! Rules of the part of an object that is cached: the whole, its metadata, or a view of it.

use quote::ToTokens;
use syn::Type;

use super::super::model::{Part, Relation, Role, Verb};
use crate::{
    codes,
    diagnostics::Errors,
    function::{argument_of, text_of},
};

/// The flag of what is cached by its metadata alone.
pub(super) const METADATA: &str = "metadata";

impl Part {
    /// Sets the part, which is given once.
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

/// Reports `PartialObjectMeta<Kind>` in the place of a kind: metadata is declared with its kind. Returns `true` for an error.
pub(super) fn part_named_as_a_kind(role: Role, named: &Type, errors: &mut Errors) -> bool {
    let Some(whole) = argument_of(named, "PartialObjectMeta").map(text_of) else { return false };
    let help = format!("write `{} = {whole}({METADATA})`; it is read as `PartialObjectMeta<{whole}>`", role.word());
    errors.push(
        named,
        codes::PART_OF_AN_OBJECT,
        &format!("the metadata of `{whole}` is declared with `{whole}`"),
        &help,
    );
    true
}

/// A kind that is read live has no cache. An owned kind is compared as a whole, so that a view of it is not enough.
pub(super) fn part_fits_the_role(relation: &Relation, errors: &mut Errors) {
    let kind = relation.kind.to_token_stream();
    if relation.role.is_live() {
        let what = format!("`{kind}` is read live and has no cache: `metadata` and `as` have no effect");
        let help = "remove `live`, or `metadata` or `as`";
        match &relation.part {
            Part::Whole => {}
            Part::Metadata(word) => errors.push(word, codes::PART_OF_AN_OBJECT, &what, help),
            Part::View(word, _) => errors.push(word, codes::PART_OF_AN_OBJECT, &what, help),
        }
    }
    if relation.role == Role::Owns {
        let whole = relation.verbs.iter().find(|declared| matches!(declared.verb, Verb::Create | Verb::Update));
        match (&relation.part, whole) {
            (Part::View(word, _), _) => {
                let what = format!(
                    "an owned kind can't be a view: `converge` compares whole objects, and a view of `{kind}` has only some of its fields"
                );
                let help = format!(
                    "write `owns = {kind}`, or `owns = {kind}(metadata)` to apply and delete it by its metadata alone"
                );
                errors.push(word, codes::PART_OF_AN_OBJECT, &what, &help);
            }
            (Part::Metadata(_), Some(declared)) => {
                let verb = &declared.word;
                let what = format!("`{verb}` needs a whole `{kind}`, not its metadata alone");
                let help = format!("write `owns = {kind}(metadata, apply)`, and give the whole object to `apply`");
                errors.push(verb, codes::PART_OF_AN_OBJECT, &what, &help);
            }
            _ => {}
        }
    }
}
