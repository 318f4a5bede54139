//! The verbs, flags and options of `primary(…)`.
//!
//! | written | result |
//! |---|---|
//! | `primary(get, patch)` | the verbs in the role, and `cx.get()` and `cx.patch(…)` |
//! | `primary(read_only)` | no status is written |
//! | `primary(when = f, index = g)` | a predicate and an index |
//! | `primary = patch` | K0025, help: parentheses |
//! | `primary = Site` | K0025, help: `of = Site` on a struct |
//! | `primary(update)` | K0013: no operation on the primary needs it |
//! | `primary(map = f)` | K0028: a primary enqueues its own key |

use quote::ToTokens;
use syn::Expr;

use super::{
    super::{
        model::{DeclaredVerb, PrimaryOptions, RelationOption, Verb},
        parse::{Argument, Entry, Value},
    },
    part::METADATA,
    relation::set_once,
    relation_options::relation_option,
    verbs::{OPTIONAL, Parentheses, READ_ONLY, Subject, verb},
};
use crate::{codes, diagnostics::Errors};

/// Reads `primary(…)`. `optional` is rejected because a controller has nothing to do without its primary, and `metadata`
/// and `as` because the primary is cached as a whole. `read_only` excludes verbs that write.
pub(super) fn primary(entry: &Entry, errors: &mut Errors) -> Option<PrimaryOptions> {
    if let Some(value) = &entry.value {
        let help = match value {
            // A path to a type, such as `v1::Pod`, is a kind. A verb is in lower case.
            Value::Expr(Expr::Path(kind)) if kind.to_token_stream().to_string().contains(char::is_uppercase) => {
                let kind = kind.to_token_stream().to_string().replace(' ', "");
                format!("write for example `primary(patch)`; a struct names its kind by `of = {kind}`")
            }
            _ => "write for example `primary(patch)`".to_owned(),
        };
        let what = "`primary` takes its verbs in parentheses";
        errors.push(&entry.name, codes::FORM_OF_ANOTHER_OPTION, what, &help);
        return None;
    }
    let parentheses = Parentheses { subject: Subject::Primary, prefix: "primary".into() };
    let (mut primary, mut options_given, mut read_only) = (PrimaryOptions::default(), Vec::new(), None);
    for argument in &entry.arguments {
        match argument {
            Argument::Word(word) if word == READ_ONLY => set_once(word, &mut read_only, errors),
            Argument::Word(word) if word == OPTIONAL => {
                let what = "a primary is not optional: without it there is nothing to reconcile";
                let help = "remove it: a controller of a kind that is not there waits for it, and the app's others run";
                errors.push(word, codes::NEITHER_VERB_NOR_OPTION, what, help);
            }
            Argument::Word(word) if word == METADATA => {
                let help = "remove it: `metadata` is an option of `owns`, `watches` and `reads`";
                errors.push(word, codes::PART_OF_AN_OBJECT, "a primary is read whole", help);
            }
            Argument::Word(word) => verb(word, &mut primary.verbs, &parentheses, errors),
            Argument::Everything(star) => parentheses.report_wildcard(star, errors),
            Argument::Option(word, value) if parentheses.is_verb_in_another_form(word) => {
                parentheses.report_not_an_argument(word, value, errors);
            }
            Argument::Option(word, _) if word == RelationOption::Map.as_str() => {
                let what = "a primary enqueues its own key: `map` would never be called";
                errors.push(word, codes::WITHOUT_EFFECT, what, "remove it; `when = f` chooses the changes that count");
            }
            Argument::Option(word, value) => {
                primary.options.extend(relation_option(word, value, &mut options_given, errors));
            }
            Argument::As(word, _) => {
                let help = "remove it: `as` is an option of `watches` and `reads`";
                errors.push(word, codes::PART_OF_AN_OBJECT, "a primary is read whole", help);
            }
            Argument::Nested(word, inner) => parentheses.report_parentheses(word, inner, errors),
            Argument::Expr(expr) => parentheses.report_not_an_argument(expr, expr, errors),
        }
    }
    primary.is_read_only = read_only.is_some();
    check_primary_verbs(&primary, errors);
    Some(primary)
}

/// Reports verbs that no operation on the primary needs, which would only make the role larger, and verbs that write in
/// addition to `read_only`.
fn check_primary_verbs(primary: &PrimaryOptions, errors: &mut Errors) {
    for DeclaredVerb { word, verb } in &primary.verbs {
        if primary.is_read_only && !matches!(verb, Verb::Get | Verb::List | Verb::Watch) {
            let what = format!("a primary that is only read has no verb `{word}`");
            errors.push(word, codes::WITHOUT_EFFECT, &what, &format!("remove `{READ_ONLY}` or `{word}`"));
        } else if !verb.applies_to_primary() {
            let help = match verb {
                Verb::Update | Verb::Apply => {
                    "write `primary(patch)`, and use `cx.patch(…)`; or write the rule in `rbac(rule())`, and use `cx.client()`"
                }
                _ => "write the rule in `rbac(rule())`, and use `cx.client()`",
            };
            let what = format!("`{word}` is not an operation on the primary");
            errors.push(word, codes::NEITHER_VERB_NOR_OPTION, &what, help);
        }
    }
}
