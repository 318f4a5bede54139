//! Relations to kinds, and what stands in their parentheses: verbs, flags and options.
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
//! | K0014 | `watches` without `map` |
//! | K0015 | an unknown verb, or a wildcard |
//! | K0016 | an unknown option |
//! | K0022 | a verb, flag or option twice |
//! | K0028 | an option that would have no effect |

use quote::ToTokens;
use syn::{Expr, ExprLit, Ident, Lit, Type};

use super::{
    super::{
        model::{DeclaredOption, DeclaredVerb, Part, PrimaryOptions, Relation, RelationKind, RelationOption, Verb},
        parse::{Argument, Entry, Value},
    },
    part::{METADATA, check_part, report_metadata_type},
    verbs::{LIVE, OPTIONAL, Parentheses, Subject, verb},
};
use crate::{
    codes,
    diagnostics::{Errors, nearest},
};

/// The flag of `owns` that sets `blockOwnerDeletion` in owner references.
const BLOCKING: &str = "block_owner_deletion";
/// The flag of `primary` whose status is not written.
const READ_ONLY: &str = "read_only";

/// Reports K0012 for a relation without a kind. The help has one relation for each kind that the value names.
fn report_missing_kind(entry: &Entry, errors: &mut Errors) {
    let name = &entry.name;
    let kinds: Vec<String> = match &entry.value {
        Some(Value::Expr(value)) => kinds_within(value),
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
fn kinds_within(value: &Expr) -> Vec<String> {
    match value {
        Expr::Array(list) => list.elems.iter().flat_map(kinds_within).collect(),
        Expr::Tuple(list) => list.elems.iter().flat_map(kinds_within).collect(),
        Expr::Binary(joined) => [&joined.left, &joined.right].into_iter().flat_map(|side| kinds_within(side)).collect(),
        Expr::Reference(of) => kinds_within(&of.expr),
        Expr::Paren(of) => kinds_within(&of.expr),
        Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => vec![text.value()],
        Expr::Path(_) | Expr::Call(_) => vec![value.to_token_stream().to_string()],
        _ => Vec::new(),
    }
}

/// Returns a kind that stands where verbs belong: `owns(Pod, Secret)`.
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
    if report_metadata_type(declared_as, kind, errors) || report_dynamic(kind, errors) {
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
    let prefix = format!("{} = {}", declared_as.word(), kind.to_token_stream());
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
fn set_once(word: &Ident, flag: &mut Option<Ident>, errors: &mut Errors) {
    if flag.is_some() {
        errors.push(word, codes::DUPLICATE, &format!("`{word}` is given twice"), "remove one of them");
        return;
    }
    *flag = Some(word.clone());
}

/// Makes `reads` live. K0022 for `live` beside `live(cluster)`: one of them would be lost, and its rule in the role with it.
fn set_live(word: &Ident, live: RelationKind, relation: &mut Relation, errors: &mut Errors) {
    if relation.declared_as.is_live() {
        let help = "write `live` for the namespace of the primary, or `live(cluster)` for all namespaces";
        errors.push(word, codes::DUPLICATE, &format!("`{word}` is given twice"), help);
        return;
    }
    relation.declared_as = live;
}

/// Reads `primary(…)`. `optional`, `metadata` and `as` are rejected: a primary is there, and it is cached as a whole.
/// `read_only` excludes verbs that write.
pub(super) fn primary(entry: &Entry, errors: &mut Errors) -> Option<PrimaryOptions> {
    if entry.value.is_some() {
        let (what, help) = ("`primary` takes its verbs in parentheses", "write for example `primary(patch)`");
        errors.push(&entry.name, codes::FORM_OF_ANOTHER_OPTION, what, help);
        return None;
    }
    let parentheses = Parentheses { subject: Subject::Primary, prefix: "primary".into() };
    let (mut primary, mut options_given, mut read_only) = (PrimaryOptions::default(), Vec::new(), None);
    for argument in &entry.arguments {
        match argument {
            Argument::Word(word) if word == READ_ONLY => set_once(word, &mut read_only, errors),
            Argument::Word(word) if word == OPTIONAL => {
                let what = "a primary is not optional: without it there is nothing to reconcile";
                let help =
                    "remove it: a controller of a kind that is not there waits for it, and others of the app go on";
                errors.push(word, codes::NEITHER_VERB_NOR_OPTION, what, help);
            }
            Argument::Word(word) if word == METADATA => {
                let help = "metadata alone is of a kind in `owns`, `watches` or `reads`";
                errors.push(word, codes::PART_OF_AN_OBJECT, "a primary is read whole", help);
            }
            Argument::Word(word) => verb(word, &mut primary.verbs, &parentheses, errors),
            Argument::Everything(star) => parentheses.report_wildcard(star, errors),
            Argument::Option(word, value) if parentheses.is_verb_in_another_form(word) => {
                parentheses.report_not_an_argument(word, value, errors);
            }
            Argument::Option(word, value) => {
                primary.options.extend(relation_option(word, value, &mut options_given, errors));
            }
            Argument::As(word, _) => {
                let help = "a view is of a kind in `watches` or `reads`";
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

/// Reports verbs that no operation on the primary needs, which would only make the role larger, and verbs that write
/// beside `read_only`.
fn check_primary_verbs(primary: &PrimaryOptions, errors: &mut Errors) {
    for DeclaredVerb { word, verb } in &primary.verbs {
        if primary.is_read_only && !matches!(verb, Verb::Get | Verb::List | Verb::Watch) {
            let what = format!("a primary that is only read has no verb `{word}`");
            errors.push(word, codes::WITHOUT_EFFECT, &what, &format!("remove `{READ_ONLY}` or `{word}`"));
        } else if !verb.is_of_primary() {
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

/// Returns `true` for kube's `DynamicObject`.
pub(in crate::controller) fn is_dynamic(kind: &Type) -> bool {
    let Type::Path(path) = kind else { return false };
    path.path.segments.last().is_some_and(|last| last.ident == "DynamicObject")
}

/// Reports `optional` on a kind that is read live: it has no cache that could be absent.
fn check_optional(relation: &Relation, errors: &mut Errors) {
    let Some(word) = relation.optional.as_ref().filter(|_| relation.declared_as.is_live()) else { return };
    let kind = relation.kind.to_token_stream();
    let what = format!("`{kind}` is read live and has no cache: `{OPTIONAL}` has no effect");
    let help = format!("remove `live` or `{OPTIONAL}`; a live read of a kind that is not served fails with 404");
    errors.push(word, codes::WITHOUT_EFFECT, &what, &help);
}

/// Reports verbs without an operation. `binding`, `token` and `deletecollection` exist on `cx.objects` alone, and what
/// is read live is only read: a write needs the cache, which takes its result in.
fn check_verbs(relation: &Relation, errors: &mut Errors) {
    let kind = relation.kind.to_token_stream();
    for DeclaredVerb { word, verb } in &relation.verbs {
        if relation.declared_as == RelationKind::Owns
            && matches!(verb, Verb::Binding | Verb::DeleteCollection | Verb::Token)
        {
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

/// Checks that options fit the relation. A watched kind needs a mapper (K0014). A kind that triggers nothing has neither
/// a mapper nor a predicate, and a kind without a cache has nothing to select or to index (K0028).
fn check_options(relation: &Relation, options_given: &[GivenOption], errors: &mut Errors) {
    let (declared_as, kind) = (relation.declared_as, relation.kind.to_token_stream());
    if declared_as == RelationKind::Watches && !options_given.iter().any(|given| given.option == RelationOption::Map) {
        let what = "a watched kind needs a mapper from its objects to primaries";
        let help = format!(
            "write `watches = {kind}(map = f)` with a function that returns the keys of the primaries of an object"
        );
        errors.push(&relation.kind, codes::MISSING_MAPPER, what, &help);
    }
    for GivenOption { option, word } in options_given {
        let is_of_triggers = matches!(option, RelationOption::Map | RelationOption::When);
        if is_of_triggers && !declared_as.triggers() {
            let what = format!("`reads` triggers nothing: `{word}` would never be called");
            let help = format!("write `watches = {kind}(map = f)`, or remove `{word}`");
            errors.push(word, codes::WITHOUT_EFFECT, &what, &help);
        } else if declared_as.is_live() && *option != RelationOption::On {
            let what = format!("`{kind}` is read live and has no cache: `{word}` has no effect");
            errors.push(word, codes::WITHOUT_EFFECT, &what, &format!("remove `live` or `{word}`"));
        }
    }
}

/// An option that stands in the parentheses, even if its value is wrong: it does not count as missing.
struct GivenOption {
    option: RelationOption,
    word: Ident,
}

/// Reads one option of a relation. K0016 for an unknown one, K0022 for a repeated one, and K0026 for a string in the
/// place of a function or the reverse.
fn relation_option(
    word: &Ident,
    value: &Expr,
    options_given: &mut Vec<GivenOption>,
    errors: &mut Errors,
) -> Option<DeclaredOption> {
    let text = word.to_string();
    let Some(option) = RelationOption::of(&text) else {
        let help = nearest(&text, RelationOption::WORDS).map_or_else(
            || format!("the options are {}", RelationOption::WORDS.join(", ")),
            |candidate| format!("did you mean `{candidate}`?"),
        );
        errors.push(word, codes::UNKNOWN_RELATION_OPTION, &format!("a relation has no option `{text}`"), &help);
        return None;
    };
    if option != RelationOption::Index && options_given.iter().any(|given| given.option == option) {
        errors.push(word, codes::DUPLICATE, &format!("`{text}` is given twice"), "remove one of them");
        return None;
    }
    options_given.push(GivenOption { option, word: word.clone() });
    if let Expr::Lit(ExprLit { lit, .. }) = value {
        let is_string = matches!(lit, Lit::Str(_));
        let wants_string = matches!(option, RelationOption::Selector | RelationOption::Fields | RelationOption::On);
        if is_string != wants_string {
            let (what, form) = if wants_string { ("a string", "\"…\"") } else { ("a function", "f") };
            let help = format!("write `{text} = {form}`");
            errors.push(lit, codes::STRING_OR_FUNCTION, &format!("`{text}` takes {what}"), &help);
            return None;
        }
    }
    Some(DeclaredOption { option, word: word.clone(), value: value.clone() })
}

#[cfg(test)]
mod tests {
    use quote::quote;

    /// Returns the messages about a controller with these options, in one line each.
    fn messages(options: &str) -> Vec<String> {
        let item = quote!(
            async fn pods(_config: Arc<ConfigMap>, _cx: Context<pods>) -> Result<Action> {
                todo()
            }
        );
        let text = crate::controller::expand(options.parse().unwrap(), &item).to_string();
        let messages = text.split("compile_error ! { ").skip(1).filter_map(|rest| rest.split(" }").next());
        messages.map(|text| text.trim_matches('"').replace("\\n", " / ").replace("\\\"", "\"")).collect()
    }

    #[test]
    fn verbs_in_other_forms_get_help() {
        let all = "a rule lists its verbs: all verbs would allow more than is needed / help: ";
        let none = "neither a verb nor an option / help: ";
        for (options, expected) in [
            ("owns = Pod(*)", format!("{all}write `owns = Pod`, which may create, update, patch, apply and delete, or list the verbs that are used: `owns = Pod(create, delete)` / code: K0015")),
            ("owns = Pod(create, *)", format!("{all}write `owns = Pod`, ")),
            ("owns = Pod(All)", format!("{all}write `owns = Pod`, ")),
            ("reads = Node(*)", format!("{all}write `reads = Node` to read only, or list the verbs that are used, for example `reads = Node(patch)`")),
            ("primary(*)", format!("{all}write the verbs that are used, for example `primary(patch)`; its status may be written in any case")),
            ("owns = Pod(\"create\")", format!("{none}write `owns = Pod(create)`")),
            ("owns = Pod(\"create,delete\")", format!("{none}write `owns = Pod(create, delete)`")),
            ("owns = Pod(create | Delete)", format!("{none}write `owns = Pod(create, delete)`")),
            ("owns = Pod([create, patch])", format!("{none}write `owns = Pod(create, patch)`")),
            ("owns = Pod(verbs = [create, patch])", format!("{none}write `owns = Pod(create, patch)`")),
            ("owns = Pod(verbs = \"*\")", format!("{none}write for example `owns = Pod(create)`")),
            ("owns = Pod(create = true)", format!("{none}write `owns = Pod(create)`")),
            ("owns = Pod(status / patch)", format!("{none}write `owns = Pod(status, patch)`")),
            ("owns = Pod(status(patch))", "`status` takes no parentheses / help: write `owns = Pod(status)`; `patch` beside it would be of the object itself".into()),
            ("reads = Secret(\"live\")", format!("{none}write `reads = Secret(live)`")),
            ("reads = Secret(live = true)", format!("{none}write `reads = Secret(live)`")),
            ("reads = Secret(optional = true)", format!("{none}write `reads = Secret(optional)`")),
            ("reads = Secret(Optional)", "`Optional` is not a verb / help: did you mean `optional`?".into()),
            ("reads = Secret(optional, optional)", "`optional` is given twice / help: remove one of them".into()),
            ("reads = Secret(live, optional)", "`Secret` is read live and has no cache: `optional` has no effect / help: remove `live` or `optional`; a live read of a kind that is not served fails with 404".into()),
            ("primary(optional)", "a primary is not optional: without it there is nothing to reconcile / help: remove it".into()),
            ("reads = Secret(Live)", "`Live` is not a verb / help: did you mean `live`?".into()),
            ("reads = Secret(live(everywhere))", "`live` takes no parentheses / help: write `live` or `live(cluster)`".into()),
            ("owns = Pod(Create)", "`Create` is not a verb / help: did you mean `create`?".into()),
            ("primary(\"patch\")", format!("{none}write `primary(patch)`")),
            ("primary(\"update\")", format!("{none}write for example `primary(patch)`")),
            ("primary(update = true)", format!("{none}write for example `primary(patch)`")),
            ("primary(write)", "`write` is not a verb / help: write `primary(patch, delete)`".into()),
            ("primary(evict)", "`evict` is not a verb / help: no operation of kctl on the primary uses it: write the rule in `rbac(rule())`, and use `cx.client()`".into()),
            ("primary(verbs = [scale])", format!("{none}write `primary(scale)`")),
            ("owns = Pod(evict)", "`evict` is not a verb / help: write `owns = Pod(eviction)`".into()),
            ("owns = Pod(write)", "`write` is not a verb / help: write `owns = Pod(create, update, patch, delete)`".into()),
            ("owns = Pod(exec)", "`exec` is not a verb / help: no operation of kctl uses `exec`: write the rule in `rbac(rule())`, and use `cx.client()`".into()),
            ("primary(finalizers)", "`finalizers` is not a verb / help: a declared finalizer includes this permission: remove it".into()),
            ("owns = Pod, Secret", "`#[controller]` has no option `Secret` / help: name the relation of each kind: `owns = Secret`, `watches = Secret(map = f)` or `reads = Secret`".into()),
            ("rbac(*)", "a rule is a value of the type `PolicyRule` / help: write `rbac(rule())`".into()),
            ("rbac(verbs = \"*\")", "a rule is a value of the type `PolicyRule` / help: write `rbac(rule())`".into()),
        ] {
            let messages = messages(options);
            assert!(messages.iter().any(|text| text.starts_with(&expected)), "{options}: {expected}\n{messages:?}");
            assert_eq!(messages.len(), 1, "{options}: one mistake is one message: {messages:?}");
        }
    }

    #[test]
    fn options_and_flags_are_given_once() {
        let twice = |word| format!("`{word}` is given twice / help: remove one of them / code: K0022");
        let live = "`live` is given twice / help: write `live` for the namespace of the primary, or `live(cluster)` for all namespaces / code: K0022";
        for (options, expected) in [
            ("reads = Secret(live, live)", live.to_owned()),
            ("reads = Secret(live, live(cluster))", live.to_owned()),
            ("reads = Secret(live(cluster), live)", live.to_owned()),
            ("reads = Secret(live(cluster), live(cluster))", live.to_owned()),
            ("owns = Pod(block_owner_deletion, block_owner_deletion)", twice("block_owner_deletion")),
            ("primary(read_only, read_only)", twice("read_only")),
            ("backoff(\"5ms\", max = \"1s\", max = \"2s\")", twice("max")),
            ("backoff(\"5ms\", max = \"1 s\", max = \"2s\")", twice("max")),
            (
                "backoff(\"5ms\", \"1000s\")",
                "`backoff` has one first wait / help: write `backoff(\"5ms\", max = \"1000s\")` / code: K0019".into(),
            ),
            (
                "rbac(rule(), on = Edge, on = Other)",
                "`on` is given twice: the rules of one `rbac` are on one cluster / help: write an `rbac(…, on = …)` for each cluster / code: K0022".into(),
            ),
        ] {
            let messages = messages(options);
            assert!(messages.contains(&expected), "{options}: {messages:?}");
            let is_duration = |text: &&String| text.contains("K0020");
            assert_eq!(messages.iter().filter(|text| !is_duration(text)).count(), 1, "{options}: {messages:?}");
        }
    }

    #[test]
    fn all_verbs_that_do_not_fit_are_reported() {
        let whole = |verb| format!("`{verb}` needs a whole `Pod`, not its metadata alone");
        let not_owned = |verb| format!("`{verb}` is not an operation on owned objects");
        let not_of_primary = |verb| format!("`{verb}` is not an operation on the primary");
        let not_live = |verb| format!("`Secret` is read live, one object at a time: `{verb}` has no operation");
        let not_read = |verb| format!("a primary that is only read has no verb `{verb}`");
        for (options, expected) in [
            ("owns = Pod(metadata, create, patch, update)", [whole("create"), whole("update")]),
            ("owns = Pod(binding, create, token)", [not_owned("binding"), not_owned("token")]),
            ("reads = Secret(live, get, patch, list)", [not_live("patch"), not_live("list")]),
            ("reads = Secret(live(cluster), delete, on = Edge, apply)", [not_live("delete"), not_live("apply")]),
            ("primary(create, get, update)", [not_of_primary("create"), not_of_primary("update")]),
            ("primary(apply, deletecollection)", [not_of_primary("apply"), not_of_primary("deletecollection")]),
            ("primary(eviction, scale, binding)", [not_of_primary("eviction"), not_of_primary("binding")]),
            ("primary(token, read_only, create)", [not_read("token"), not_read("create")]),
            ("primary(read_only, get, patch, delete)", [not_read("patch"), not_read("delete")]),
        ] {
            let messages = messages(options);
            let found: Vec<_> = messages.iter().filter_map(|text| text.split(" / ").next()).collect();
            assert_eq!(found, expected, "{options}");
        }
    }

    #[test]
    fn several_operations_get_help_for_several_functions() {
        let item = quote!(
            fn health(_workload: &Workload) -> Result<bool> {
                Ok(true)
            }
        );
        let two = "a function answers one operation\\nhelp: write a function for each, with `#[interpreter(op = InterpretHealth)]` and `#[interpreter(op = Retain)]`";
        let one = "is not an operation\\nhelp: write `op = InterpretHealth`";
        for (options, expected) in [
            ("op = [InterpretHealth, Retain]", two),
            ("op = (InterpretHealth, Retain)", two),
            ("op = InterpretHealth | Retain", two),
            ("op = InterpretHealth(Workload)", one),
            ("op = Operation::InterpretHealth", one),
        ] {
            let text = crate::interpreter::expand(options.parse().unwrap(), &item).to_string();
            assert!(text.contains(expected), "{options}: {text}");
        }
    }
}
