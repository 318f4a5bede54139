//! The options in the parentheses of a kind: `map`, `when`, `selector`, `index` and others.
//!
//! | code | mistake |
//! |---|---|
//! | K0014 | `watches` without `map` |
//! | K0016 | an unknown option |
//! | K0022 | an option twice |
//! | K0026 | a string in the place of a function, or the reverse |
//! | K0028 | an option that would have no effect |
//! | K0105 | a selector that API servers can't parse |

use kctl_apimachinery::{fields::is_field_selector, labels};
use syn::{Expr, ExprLit, Ident, Lit, LitStr};

use super::super::model::{DeclaredOption, Relation, RelationKind, RelationOption};
use crate::{
    codes,
    diagnostics::{Errors, closest_match},
    function::type_text,
};

/// An option in the parentheses, even if its value is wrong: it does not count as missing.
pub(super) struct GivenOption {
    option: RelationOption,
    word: Ident,
}

/// Reads one option of a relation. K0016 for an unknown one, K0022 for a repeated one, and K0105 for an invalid
/// selector. K0026 for a string in the place of a function, or the reverse.
pub(super) fn relation_option(
    word: &Ident,
    value: &Expr,
    options_given: &mut Vec<GivenOption>,
    errors: &mut Errors,
) -> Option<DeclaredOption> {
    let text = word.to_string();
    let Some(option) = RelationOption::of(&text) else {
        let help = closest_match(&text, RelationOption::WORDS).map_or_else(
            || format!("the options are {}", RelationOption::WORDS.join(", ")),
            |candidate| format!("did you mean `{candidate}`?"),
        );
        errors.push(word, codes::UNKNOWN_RELATION_OPTION, &format!("a relation has no option `{text}`"), &help);
        return None;
    };
    if option != RelationOption::Index && options_given.iter().any(|given| given.option == option) {
        errors.push_duplicate(word);
        return None;
    }
    options_given.push(GivenOption { option, word: word.clone() });
    if let Expr::Lit(ExprLit { lit, .. }) = value {
        let is_string = matches!(lit, Lit::Str(_));
        let wants_string = match option {
            RelationOption::Selector | RelationOption::Fields | RelationOption::On => true,
            RelationOption::Map | RelationOption::When | RelationOption::Index => false,
        };
        if is_string != wants_string {
            let (what, form) = if wants_string { ("a string", "\"…\"") } else { ("a function", "f") };
            let help = format!("write `{text} = {form}`");
            errors.push(lit, codes::STRING_OR_FUNCTION, &format!("`{text}` takes {what}"), &help);
            return None;
        }
        if let Lit::Str(selector) = lit
            && report_invalid_selector(option, selector, errors)
        {
            return None;
        }
    }
    Some(DeclaredOption { option, word: word.clone(), value: value.clone() })
}

/// Reports K0105 for a selector that API servers would not parse. Returns `true` for an error.
fn report_invalid_selector(option: RelationOption, selector: &LitStr, errors: &mut Errors) -> bool {
    let text = selector.value();
    let (is_valid, what, help) = match option {
        RelationOption::Selector => (
            labels::parse(&text).is_some(),
            "label selector",
            "write for example `selector = \"app=web,tier in (front, back),!legacy\"`",
        ),
        RelationOption::Fields => (
            is_field_selector(&text),
            "field selector",
            "write for example `fields = \"metadata.namespace!=system,spec.nodeName=a\"`",
        ),
        _ => return false,
    };
    if !is_valid {
        errors.push(selector, codes::INVALID_SELECTOR, &format!("`{text}` is not a {what}"), help);
    }
    !is_valid
}

/// Checks that options fit the relation. A watched kind needs a mapper (K0014). A kind that triggers nothing has neither
/// a mapper nor a predicate, and a kind without a cache has nothing to select or to index (K0028).
///
/// An option that has no effect in its relation is K0028. A flag or a verb of another relation is K0013 (`relation.rs`).
pub(super) fn check_options(relation: &Relation, options_given: &[GivenOption], errors: &mut Errors) {
    let (declared_as, kind) = (relation.declared_as, type_text(&relation.kind));
    if declared_as == RelationKind::Watches && !options_given.iter().any(|given| given.option == RelationOption::Map) {
        let what = "a watched kind needs a mapper from its objects to primaries";
        let help = format!(
            "write `watches = {kind}(map = f)` with a function that returns the keys of the primaries of an object"
        );
        errors.push(&relation.kind, codes::MISSING_MAPPER, what, &help);
    }
    for GivenOption { option, word } in options_given {
        let needs_trigger = matches!(option, RelationOption::Map | RelationOption::When);
        if needs_trigger && !declared_as.triggers() {
            let what = format!("`reads` triggers nothing: `{word}` would never be called");
            let help = format!("write `watches = {kind}(map = f)`, or remove `{word}`");
            errors.push(word, codes::WITHOUT_EFFECT, &what, &help);
        } else if declared_as.is_live() && *option != RelationOption::On {
            let what = format!("`{kind}` is read live and has no cache: `{word}` has no effect");
            errors.push(word, codes::WITHOUT_EFFECT, &what, &format!("remove `live` or `{word}`"));
        }
    }
}
