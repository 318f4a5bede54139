//! Relations to kinds, and what stands in their parentheses: verbs, flags and options.

use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens;
use syn::{Expr, ExprLit, Ident, Lit, Type};

use super::{
    super::{
        model::{DeclaredOption, DeclaredVerb, Part, PrimaryOptions, Relation, RelationOption, Role, Verb},
        parse::{Argument, Entry, Value},
    },
    part::{METADATA, part_fits_the_role, part_named_as_a_kind},
};
use crate::{
    codes,
    diagnostics::{Errors, nearest},
};

/// The flag of `owns`.
const BLOCKING: &str = "block_owner_deletion";
/// The flag of a kind that is read without a cache.
const LIVE: &str = "live";
/// The flag of a kind that need not be there.
const OPTIONAL: &str = "optional";
/// The flag of `primary`.
const READ_ONLY: &str = "read_only";
/// Adds an error for a relation without a kind, with the form for one kind, or several.
fn no_kind(entry: &Entry, errors: &mut Errors) {
    let name = &entry.name;
    let kinds: Vec<String> = match &entry.value {
        Some(Value::Expr(value)) => kinds_within(value),
        Some(Value::Kind(_)) => Vec::new(),
        None => entry.arguments.iter().filter_map(in_parentheses).collect(),
    };
    let written: Vec<_> = kinds.iter().map(|kind| format!("{name} = {kind}")).collect();
    let help =
        if written.is_empty() { format!("write `{name} = Kind`") } else { format!("write `{}`", written.join(", ")) };
    let place = match &entry.value {
        Some(Value::Expr(value)) => value.to_token_stream(),
        _ => entry.name.to_token_stream(),
    };
    errors.push(place, codes::NOT_A_KIND_NAME, &format!("`{name}` names a kind"), &help);
}

/// The kinds of `[Pod, Secret]`, `Pod + Secret`, `&Pod` or `"Pod"`.
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

/// A kind where verbs belong: `owns(Pod, Secret)`.
fn in_parentheses(argument: &Argument) -> Option<String> {
    match argument {
        Argument::Word(kind) => Some(kind.to_string()),
        Argument::Nested(kind, verb) => Some(format!("{kind}({verb})")),
        _ => None,
    }
}

/// Reads `owns = Kind(…)`, `watches = Kind(…)` or `reads = Kind(…)`.
pub(super) fn relation(entry: &Entry, role: Role, errors: &mut Errors) -> Option<Relation> {
    let Some(Value::Kind(kind)) = &entry.value else {
        no_kind(entry, errors);
        return None;
    };
    if part_named_as_a_kind(role, kind, errors) || !is_not_dynamic(kind, errors) {
        return None;
    }
    let mut relation = Relation {
        role,
        kind: kind.clone(),
        verbs: Vec::new(),
        options: Vec::new(),
        blocking: None,
        optional: None,
        part: Part::Whole,
    };
    let of = format!("{} = {}", role.word(), kind.to_token_stream());
    let place = Place { subject: Subject::Related(role), of };
    let mut given = Vec::new();
    for argument in &entry.arguments {
        match argument {
            Argument::Word(word) => {
                if !is_flag(word, &mut relation, errors) {
                    verb(word, &mut relation.verbs, &place, errors);
                }
            }
            Argument::Nested(word, scope) if word == "live" && scope == "cluster" && role == Role::Reads => {
                relation.role = Role::ReadsLiveInCluster;
            }
            Argument::As(word, ty) => relation.part.set(Part::View(*word, Box::new(ty.clone())), errors),
            Argument::Everything(star) => place.everything(star, errors),
            Argument::Option(word, value) if place.is_of_verbs(word) => place.no_argument(word, value, errors),
            Argument::Option(word, value) => {
                relation.options.extend(relation_option(word, value, &mut given, errors));
            }
            Argument::Nested(word, inner) => place.no_parentheses(word, inner, errors),
            Argument::Expr(expr) => place.no_argument(expr, expr, errors),
        }
    }
    verbs_fit_the_role(&relation, errors);
    options_fit_the_role(&relation, &given, errors);
    part_fits_the_role(&relation, errors);
    optional_fits_the_role(&relation, errors);
    Some(relation)
}

/// Sets the flag of a word, or reports one that is wrong here. Returns `false` if the word is not a flag.
fn is_flag(word: &Ident, relation: &mut Relation, errors: &mut Errors) -> bool {
    match (word.to_string().as_str(), relation.role) {
        (LIVE, Role::Reads | Role::ReadsLive | Role::ReadsLiveInCluster) => relation.role = Role::ReadsLive,
        (LIVE, Role::Owns | Role::Watches) => {
            let help = "write `reads = Kind(live)`";
            errors.push(word, codes::NEITHER_VERB_NOR_OPTION, "only `reads` can be live", help);
        }
        (BLOCKING, Role::Owns) => relation.blocking = Some(word.clone()),
        (BLOCKING, _) => {
            let help = format!("write `owns = Kind({BLOCKING})`");
            errors.push(word, codes::NEITHER_VERB_NOR_OPTION, "only `owns` writes owner references", &help);
        }
        (OPTIONAL, _) if relation.optional.is_some() => {
            errors.push(word, codes::DUPLICATE, "`optional` is given twice", "remove one of them");
        }
        (OPTIONAL, _) => relation.optional = Some(word.clone()),
        (METADATA, _) => relation.part.set(Part::Metadata(word.clone()), errors),
        _ => return false,
    }
    true
}

/// Reads `primary(…)`.
pub(super) fn primary(entry: &Entry, errors: &mut Errors) -> Option<PrimaryOptions> {
    if entry.value.is_some() {
        let (what, help) = ("`primary` takes its verbs in parentheses", "write for example `primary(patch)`");
        errors.push(&entry.name, codes::FORM_OF_ANOTHER_OPTION, what, help);
        return None;
    }
    let place = Place { subject: Subject::Primary, of: "primary".into() };
    let (mut primary, mut given) = (PrimaryOptions::default(), Vec::new());
    for argument in &entry.arguments {
        match argument {
            Argument::Word(word) if word == READ_ONLY => primary.is_read_only = true,
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
            Argument::Word(word) => verb(word, &mut primary.verbs, &place, errors),
            Argument::Everything(star) => place.everything(star, errors),
            Argument::Option(word, value) if place.is_of_verbs(word) => place.no_argument(word, value, errors),
            Argument::Option(word, value) => {
                primary.options.extend(relation_option(word, value, &mut given, errors));
            }
            Argument::As(word, _) => {
                let help = "a view is of a kind in `watches` or `reads`";
                errors.push(word, codes::PART_OF_AN_OBJECT, "a primary is read whole", help);
            }
            Argument::Nested(word, inner) => place.no_parentheses(word, inner, errors),
            Argument::Expr(expr) => place.no_argument(expr, expr, errors),
        }
    }
    let writes = |declared: &&DeclaredVerb| !matches!(declared.verb, Verb::Get | Verb::List | Verb::Watch);
    if primary.is_read_only
        && let Some(DeclaredVerb { word, .. }) = primary.verbs.iter().find(writes)
    {
        let what = format!("a primary that is only read has no verb `{word}`");
        errors.push(word, codes::WITHOUT_EFFECT, &what, &format!("remove `{READ_ONLY}` or `{word}`"));
    }
    Some(primary)
}

/// Reports a kind that is only known at run time: no permissions can be derived from it. Returns `true` for any other kind.
pub(super) fn is_not_dynamic(kind: &Type, errors: &mut Errors) -> bool {
    let is_dynamic = is_dynamic(kind);
    if is_dynamic {
        let help = "name the kind; what is found at run time is declared by `rbac(rule())`, watched by `env.watches` and changed by \
                    `cx.client()`";
        let what = "`DynamicObject` is any kind, so no role can be derived from it";
        errors.push(kind, codes::NOT_A_KIND, what, help);
    }
    !is_dynamic
}

pub(in crate::controller) fn is_dynamic(kind: &Type) -> bool {
    let Type::Path(path) = kind else { return false };
    path.path.segments.last().is_some_and(|last| last.ident == "DynamicObject")
}

/// A kind that is read live has no cache that could be absent.
fn optional_fits_the_role(relation: &Relation, errors: &mut Errors) {
    let Some(word) = relation.optional.as_ref().filter(|_| relation.role.is_live()) else { return };
    let kind = relation.kind.to_token_stream();
    let what = format!("`{kind}` is read live and has no cache: `{OPTIONAL}` has no effect");
    let help = format!("remove `live` or `{OPTIONAL}`; a live read of a kind that is not served fails with 404");
    errors.push(word, codes::WITHOUT_EFFECT, &what, &help);
}

/// Owned objects are changed through `cx.owned`, which has no operation for some verbs.
fn verbs_fit_the_role(relation: &Relation, errors: &mut Errors) {
    let has_no_operation =
        |declared: &&DeclaredVerb| matches!(declared.verb, Verb::Binding | Verb::DeleteCollection | Verb::Token);
    if relation.role == Role::Owns
        && let Some(DeclaredVerb { word, .. }) = relation.verbs.iter().find(has_no_operation)
    {
        let help = "write the rule in `rbac(rule())`, and use `cx.client()`";
        let what = format!("`{word}` is not an operation on owned objects");
        errors.push(word, codes::NEITHER_VERB_NOR_OPTION, &what, help);
    }
}

fn verb(word: &Ident, verbs: &mut Vec<DeclaredVerb>, place: &Place, errors: &mut Errors) {
    let text = word.to_string();
    if verbs.iter().any(|declared| declared.word == *word) {
        errors.push(word, codes::DUPLICATE, &format!("`{text}` is given twice"), "remove one of them");
        return;
    }
    if let Some(verb) = Verb::of(&text) {
        verbs.push(DeclaredVerb { verb, word: word.clone() });
        return;
    }
    if EVERYTHING.contains(&text.to_lowercase().as_str()) {
        place.everything(word, errors);
        return;
    }
    let nearest = nearest(&text, &place.words().collect::<Vec<_>>());
    let other = OTHER_WORDS.iter().find(|(other, _)| *other == text).map(|(_, verbs)| *verbs);
    let help = match (other, nearest) {
        (Some(verbs), _) => format!("write `{}({verbs})`", place.of),
        (None, _) if WITHOUT_A_VERB.contains(&text.as_str()) => {
            format!("no operation of kctl uses `{text}`: write the rule in `rbac(rule())`, and use `cx.client()`")
        }
        (None, _) if text == "finalizers" => "a declared finalizer includes this permission: remove it".to_owned(),
        (None, Some(known)) => format!("did you mean `{known}`?"),
        (None, None) => format!("the verbs are {}", Verb::WORDS.join(", ")),
    };
    errors.push(word, codes::UNKNOWN_VERB, &format!("`{text}` is not a verb"), &help);
}

/// Words that are not verbs of Kubernetes, with the verbs to write.
const OTHER_WORDS: [(&str, &str); 5] = [
    ("read", "get, list, watch"),
    ("write", "create, update, patch, delete"),
    ("remove", "delete"),
    ("evict", "eviction"),
    ("deletecollections", "deletecollection"),
];
/// Verbs and subresources of Kubernetes for which a context has no operation.
const WITHOUT_A_VERB: [&str; 12] = [
    "approve",
    "attach",
    "bind",
    "escalate",
    "exec",
    "impersonate",
    "log",
    "portforward",
    "proxy",
    "resize",
    "sign",
    "use",
];

/// Words of other tools for every verb.
const EVERYTHING: [&str; 3] = ["all", "any", "everything"];

/// The owner of the parentheses that are read, for messages that show what to write in them.
struct Place {
    subject: Subject,
    /// `owns = Pod`.
    of: String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Subject {
    Primary,
    Related(Role),
}

impl Place {
    /// The words that stand here alone.
    fn words(&self) -> impl Iterator<Item = &'static str> {
        let flags: &[&str] = match self.subject {
            Subject::Primary => &[],
            Subject::Related(Role::Owns | Role::Watches) => &[OPTIONAL],
            Subject::Related(Role::Reads | Role::ReadsLive | Role::ReadsLiveInCluster) => &[LIVE, OPTIONAL],
        };
        Verb::WORDS.iter().chain(flags).copied()
    }

    /// A verb with a value, or a list of verbs with a name.
    fn is_of_verbs(&self, option: &Ident) -> bool {
        let text = option.to_string();
        text.starts_with("verb") || text == "operations" || self.words().any(|word| word == text)
    }

    fn everything(&self, place: impl ToTokens, errors: &mut Errors) {
        let Self { subject, of } = self;
        let what = "a rule lists its verbs: all verbs would allow more than is needed";
        let help = match subject {
            Subject::Related(Role::Owns) => format!(
                "write `{of}`, which may create, update, patch, apply and delete, or list the verbs that are used: `{of}(create, delete)`"
            ),
            Subject::Primary => {
                "write the verbs that are used, for example `primary(patch)`; its status may be written in any case"
                    .into()
            }
            Subject::Related(_) => {
                format!("write `{of}` to read only, or list the verbs that are used, for example `{of}(patch)`")
            }
        };
        errors.push(place, codes::UNKNOWN_VERB, what, &help);
    }

    /// What stands for verbs in another form: `"create"`, `create | delete`, `verbs = [create, delete]`.
    fn no_argument(&self, place: impl ToTokens, value: &Expr, errors: &mut Errors) {
        let mut words = vec![place.to_token_stream().to_string()];
        collect(value.to_token_stream(), &mut words);
        let mut known: Vec<&str> = Vec::new();
        for word in &words {
            let word = self.words().find(|known| word.eq_ignore_ascii_case(known));
            known.extend(word.filter(|word| !known.contains(word)));
        }
        let Self { subject, of } = self;
        let example = if *subject == Subject::Related(Role::Owns) { "create" } else { "patch" };
        let (start, verbs) =
            if known.is_empty() { ("write for example", example.to_owned()) } else { ("write", known.join(", ")) };
        errors.push(
            place,
            codes::NEITHER_VERB_NOR_OPTION,
            "neither a verb nor an option",
            &format!("{start} `{of}({verbs})`"),
        );
    }

    /// `status(patch)`.
    fn no_parentheses(&self, word: &Ident, inner: &Ident, errors: &mut Errors) {
        let Self { subject, of } = self;
        let is_verb = |word: &Ident| Verb::of(&word.to_string()).is_some();
        let what = format!("`{word}` takes no parentheses");
        let help = if !is_verb(word) && *subject == Subject::Related(Role::Reads) {
            "write `live` or `live(cluster)`".to_owned()
        } else if !is_verb(word) {
            format!("write for example `{of}(patch)`")
        } else if is_verb(inner) && inner != word {
            format!("write `{of}({word})`; `{inner}` beside it would be of the object itself")
        } else {
            format!("write `{of}({word})`")
        };
        errors.push(word, codes::NEITHER_VERB_NOR_OPTION, &what, &help);
    }
}

/// The words of an expression, also those in strings.
fn collect(tokens: TokenStream, words: &mut Vec<String>) {
    for token in tokens {
        match token {
            TokenTree::Group(group) => collect(group.stream(), words),
            TokenTree::Punct(_) => {}
            token => {
                let text = token.to_string();
                words.extend(text.split(|c: char| !c.is_alphanumeric()).map(ToOwned::to_owned));
            }
        }
    }
}

/// A watched kind needs a mapper. A kind that triggers nothing has neither a mapper nor a predicate. A kind without a cache has
/// nothing to select or to index.
fn options_fit_the_role(relation: &Relation, given: &[Given], errors: &mut Errors) {
    let (role, kind) = (relation.role, relation.kind.to_token_stream());
    if role == Role::Watches && !given.iter().any(|given| given.option == RelationOption::Map) {
        let what = "a watched kind needs a mapper from its objects to primaries";
        let help = format!(
            "write `watches = {kind}(map = f)` with a function that returns the keys of the primaries of an object"
        );
        errors.push(&relation.kind, codes::MISSING_MAPPER, what, &help);
    }
    for Given { option, word } in given {
        let is_of_triggers = matches!(option, RelationOption::Map | RelationOption::When);
        if is_of_triggers && !role.triggers() {
            let what = format!("`reads` triggers nothing: `{word}` would never be called");
            let help = format!("write `watches = {kind}(map = f)`, or remove `{word}`");
            errors.push(word, codes::WITHOUT_EFFECT, &what, &help);
        } else if role.is_live() && *option != RelationOption::On {
            let what = format!("`{kind}` is read live and has no cache: `{word}` has no effect");
            errors.push(word, codes::WITHOUT_EFFECT, &what, &format!("remove `live` or `{word}`"));
        }
    }
}

/// An option that stands in the parentheses, also one whose value is wrong.
struct Given {
    option: RelationOption,
    word: Ident,
}

fn relation_option(word: &Ident, value: &Expr, given: &mut Vec<Given>, errors: &mut Errors) -> Option<DeclaredOption> {
    let text = word.to_string();
    let Some(option) = RelationOption::of(&text) else {
        let help = nearest(&text, RelationOption::WORDS).map_or_else(
            || format!("the options are {}", RelationOption::WORDS.join(", ")),
            |known| format!("did you mean `{known}`?"),
        );
        errors.push(word, codes::UNKNOWN_RELATION_OPTION, &format!("a relation has no option `{text}`"), &help);
        return None;
    };
    if option != RelationOption::Index && given.iter().any(|given| given.option == option) {
        errors.push(word, codes::DUPLICATE, &format!("`{text}` is given twice"), "remove one of them");
        return None;
    }
    given.push(Given { option, word: word.clone() });
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

    /// What a controller with these options is told, without the codes.
    fn told(options: &str) -> Vec<String> {
        let item = quote!(
            async fn pods(_config: Arc<ConfigMap>, _cx: Context<pods>) -> Result<Action> {
                todo()
            }
        );
        let text = crate::controller::expand(options.parse().unwrap(), &item).to_string();
        let said = text.split("compile_error ! { ").skip(1).filter_map(|rest| rest.split(" }").next());
        said.map(|text| text.trim_matches('"').replace("\\n", " / ").replace("\\\"", "\"")).collect()
    }

    #[test]
    fn whatever_stands_for_verbs_is_told_what_to_write() {
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
            ("primary(verbs = [scale])", format!("{none}write `primary(scale)`")),
            ("owns = Pod(evict)", "`evict` is not a verb / help: write `owns = Pod(eviction)`".into()),
            ("owns = Pod(write)", "`write` is not a verb / help: write `owns = Pod(create, update, patch, delete)`".into()),
            ("owns = Pod(exec)", "`exec` is not a verb / help: no operation of kctl uses `exec`: write the rule in `rbac(rule())`, and use `cx.client()`".into()),
            ("primary(finalizers)", "`finalizers` is not a verb / help: a declared finalizer includes this permission: remove it".into()),
            ("owns = Pod, Secret", "`#[controller]` has no option `Secret` / help: name the relation of each kind: `owns = Secret`, `watches = Secret(map = f)` or `reads = Secret`".into()),
            ("rbac(*)", "a rule is a value of the type `PolicyRule` / help: write `rbac(rule())`".into()),
            ("rbac(verbs = \"*\")", "a rule is a value of the type `PolicyRule` / help: write `rbac(rule())`".into()),
        ] {
            let told = told(options);
            assert!(told.iter().any(|told| told.starts_with(&expected)), "{options}: {expected}\n{told:?}");
            assert_eq!(told.len(), 1, "{options}: one mistake is one message: {told:?}");
        }
    }

    #[test]
    fn a_function_for_several_operations_is_told_to_be_several() {
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
