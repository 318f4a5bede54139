//! Relations to kinds, and the contents of their parentheses: verbs, flags and options.
//!
//! | written | result |
//! |---|---|
//! | `owns = Pod(create, delete)` | the verbs in the role, and on `cx.owned::<Pod>()` |
//! | `watches = Secret(map = f, when = g)` | a mapper and a predicate |
//! | `reads = Node(patch, index = by_zone)` | a cache with an index, and `cx.objects::<Node>().patch(…)` |
//! | `reads = Secret(live)` | no cache: `cx.live::<Secret>().get(…)` |
//! | `owns = Pod("create")` | K0013, help: write `owns = Pod(create)` |
//! | `owns = Pod(*)` | K0015, help: list the verbs that are used |
//!
//! The codes:
//!
//! | code | mistake |
//! |---|---|
//! | K0012 | the value is not one kind |
//! | K0013 | an entry that is neither a verb nor an option here |
//! | K0015 | an unknown verb, or a wildcard |
//! | K0022 | a verb, flag or option twice |
//! | K0028 | a verb or flag that would have no effect |
//! | K0030 | not a kind: a `DynamicObject` or a pointer |

use quote::ToTokens;
use syn::{Expr, ExprLit, Ident, Lit, Type};

use super::{
    super::{
        model::{DeclaredVerb, Part, Relation, RelationKind, Verb},
        parse::{Argument, Entry, Value},
    },
    part::{METADATA, check_part, report_metadata_type},
    relation_options::{check_options, relation_option},
    verbs::{BLOCKING, LIVE, OPTIONAL, Parentheses, Subject, verb},
};
use crate::{
    codes,
    diagnostics::Errors,
    function::{compact_text, generic_argument, type_text},
};

/// Reports K0012 for a relation without a kind. The help has one relation for each kind that the value names.
fn report_missing_kind(entry: &Entry, errors: &mut Errors) {
    let name = &entry.name;
    let kinds: Vec<String> = match &entry.value {
        Some(Value::Expr(value)) => kinds_in_list(value),
        Some(Value::Kind(_)) => Vec::new(),
        None => entry.arguments.iter().filter_map(kind_in_parentheses).collect(),
    };
    let written: Vec<_> = kinds.iter().map(|kind| format!("{name} = {kind}")).collect();
    let help =
        if written.is_empty() { format!("write `{name} = Kind`") } else { format!("write `{}`", written.join(", ")) };
    let wrong = match &entry.value {
        Some(Value::Expr(value)) => value.to_token_stream(),
        _ => entry.name.to_token_stream(),
    };
    errors.push(wrong, codes::NOT_A_KIND_NAME, &format!("`{name}` names a kind"), &help);
}

/// Returns the kinds of `[Pod, Secret]`, `Pod + Secret`, `&Pod` or `"Pod"`.
pub(super) fn kinds_in_list(value: &Expr) -> Vec<String> {
    match value {
        Expr::Array(list) => list.elems.iter().flat_map(kinds_in_list).collect(),
        Expr::Tuple(list) => list.elems.iter().flat_map(kinds_in_list).collect(),
        Expr::Binary(joined) => {
            [&joined.left, &joined.right].into_iter().flat_map(|side| kinds_in_list(side)).collect()
        }
        Expr::Reference(of) => kinds_in_list(&of.expr),
        Expr::Paren(of) => kinds_in_list(&of.expr),
        Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => vec![text.value()],
        Expr::Path(_) | Expr::Call(_) => vec![value.to_token_stream().to_string().replace(" :: ", "::")],
        _ => Vec::new(),
    }
}

/// Returns a kind in the place of verbs: `owns(Pod, Secret)`.
fn kind_in_parentheses(argument: &Argument) -> Option<String> {
    match argument {
        Argument::Word(kind) => Some(kind.to_string()),
        Argument::Nested(kind, verb) => Some(format!("{kind}({verb})")),
        _ => None,
    }
}

/// Reads `owns = Kind(…)`, `watches = Kind(…)` or `reads = Kind(…)`. `None` without a kind: then its parentheses
/// can't be judged.
pub(super) fn relation(entry: &Entry, declared_as: RelationKind, errors: &mut Errors) -> Option<Relation> {
    let Some(Value::Kind(kind)) = &entry.value else {
        report_missing_kind(entry, errors);
        return None;
    };
    if report_metadata_type(declared_as, kind, errors)
        || report_dynamic(kind, errors)
        || report_pointer(&entry.name, kind, errors)
    {
        return None;
    }
    let mut relation = Relation {
        declared_as,
        kind: kind.clone(),
        verbs: Vec::new(),
        options: Vec::new(),
        blocking: None,
        optional: None,
        part: Part::Whole,
    };
    let prefix = format!("{} = {}", declared_as.as_str(), type_text(kind));
    let parentheses = Parentheses { subject: Subject::Related(declared_as), prefix };
    let mut options_given = Vec::new();
    for argument in &entry.arguments {
        match argument {
            Argument::Word(word) => {
                if !set_flag(word, &mut relation, errors) {
                    verb(word, &mut relation.verbs, &parentheses, errors);
                }
            }
            Argument::Nested(word, scope)
                if word == LIVE && scope == "cluster" && declared_as == RelationKind::Reads =>
            {
                set_live(word, RelationKind::ReadsLiveInCluster, &mut relation, errors);
            }
            Argument::As(word, ty) => relation.part.set(Part::View(*word, Box::new(ty.clone())), errors),
            Argument::Everything(star) => parentheses.report_wildcard(star, errors),
            Argument::Option(word, value) if parentheses.is_verb_in_another_form(word) => {
                parentheses.report_not_an_argument(word, value, errors);
            }
            Argument::Option(word, value) => {
                relation.options.extend(relation_option(word, value, &mut options_given, errors));
            }
            Argument::Nested(word, inner) => parentheses.report_parentheses(word, inner, errors),
            Argument::Expr(expr) => parentheses.report_not_an_argument(expr, expr, errors),
        }
    }
    check_verbs(&relation, errors);
    check_options(&relation, &options_given, errors);
    check_part(&relation, errors);
    check_optional(&relation, errors);
    Some(relation)
}

/// Sets the flag of a word, or reports one that is wrong here. Returns `false` if the word is not a flag.
fn set_flag(word: &Ident, relation: &mut Relation, errors: &mut Errors) -> bool {
    match (word.to_string().as_str(), relation.declared_as) {
        (LIVE, RelationKind::Reads | RelationKind::ReadsLive | RelationKind::ReadsLiveInCluster) => {
            set_live(word, RelationKind::ReadsLive, relation, errors);
        }
        (LIVE, RelationKind::Owns | RelationKind::Watches) => {
            let help = "write `reads = Kind(live)`";
            errors.push(word, codes::NEITHER_VERB_NOR_OPTION, "only `reads` can be live", help);
        }
        (BLOCKING, RelationKind::Owns) => set_once(word, &mut relation.blocking, errors),
        (BLOCKING, _) => {
            let help = format!("write `owns = Kind({BLOCKING})`");
            errors.push(word, codes::NEITHER_VERB_NOR_OPTION, "only `owns` writes owner references", &help);
        }
        (OPTIONAL, _) => set_once(word, &mut relation.optional, errors),
        (METADATA, _) => relation.part.set(Part::Metadata(word.clone()), errors),
        _ => return false,
    }
    true
}

/// Sets a flag. K0022 if it is set already.
pub(super) fn set_once(word: &Ident, flag: &mut Option<Ident>, errors: &mut Errors) {
    if flag.is_some() {
        errors.push_duplicate(word);
        return;
    }
    *flag = Some(word.clone());
}

/// Makes `reads` live. K0022 for `live` in addition to `live(cluster)`: one of them would be lost, and its rule in the
/// role with it.
fn set_live(word: &Ident, live: RelationKind, relation: &mut Relation, errors: &mut Errors) {
    if relation.declared_as.is_live() {
        let help = "write `live` for the namespace of the primary, or `live(cluster)` for all namespaces";
        errors.push(word, codes::DUPLICATE, &format!("`{word}` is given twice"), help);
        return;
    }
    relation.declared_as = live;
}

/// Reports K0030 for a kind that is known at run time only: no permissions can be derived from it. Returns `true` for
/// an error.
pub(super) fn report_dynamic(kind: &Type, errors: &mut Errors) -> bool {
    let is_dynamic = is_dynamic(kind);
    if is_dynamic {
        let help = "name the kind; what is found at run time is declared by `rbac(rule())`, watched by `env.watches` and changed by \
                    `cx.client()`";
        let what = "`DynamicObject` is any kind, so no role can be derived from it";
        errors.push(kind, codes::NOT_A_KIND, what, help);
    }
    is_dynamic
}

/// Reports K0030 for `Arc<Kind>` in the place of the kind. Returns `true` for an error.
pub(super) fn report_pointer(option: &Ident, written: &Type, errors: &mut Errors) -> bool {
    let Some(kind) = generic_argument(written, "Arc").map(compact_text) else { return false };
    let what = format!("`{}` is not a Kubernetes kind: it points to one", compact_text(written));
    errors.push(written, codes::NOT_A_KIND, &what, &format!("write `{option} = {kind}`"));
    true
}

/// Returns `true` for kube's `DynamicObject`.
pub(in crate::controller) fn is_dynamic(kind: &Type) -> bool {
    let Type::Path(path) = kind else { return false };
    path.path.segments.last().is_some_and(|last| last.ident == "DynamicObject")
}

/// Reports `optional` on a kind that is read live: it has no cache that could be absent.
fn check_optional(relation: &Relation, errors: &mut Errors) {
    let Some(word) = relation.optional.as_ref().filter(|_| relation.declared_as.is_live()) else { return };
    let kind = type_text(&relation.kind);
    let what = format!("`{kind}` is read live and has no cache: `{OPTIONAL}` has no effect");
    let help = format!("remove `live` or `{OPTIONAL}`; a live read of a kind that is not served fails with 404");
    errors.push(word, codes::WITHOUT_EFFECT, &what, &help);
}

/// Reports verbs without an operation. `binding`, `token` and `deletecollection` exist on `cx.objects` alone, and what
/// is read live is only read: a write needs the cache, which takes its result in.
fn check_verbs(relation: &Relation, errors: &mut Errors) {
    let kind = type_text(&relation.kind);
    for DeclaredVerb { word, verb } in &relation.verbs {
        if relation.declared_as == RelationKind::Owns && !verb.applies_to_owned() {
            let help = "write the rule in `rbac(rule())`, and use `cx.client()`";
            let what = format!("`{word}` is not an operation on owned objects");
            errors.push(word, codes::NEITHER_VERB_NOR_OPTION, &what, help);
        }
        if relation.declared_as.is_live() && *verb != Verb::Get {
            let what = format!("`{kind}` is read live, one object at a time: `{word}` has no operation");
            let help = format!(
                "write `reads = {kind}({word})`, which is cached, or write the rule in `rbac(rule())`, and use `cx.client()`"
            );
            errors.push(word, codes::WITHOUT_EFFECT, &what, &help);
        }
    }
}
