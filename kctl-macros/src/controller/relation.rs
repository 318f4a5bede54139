//! Relations to kinds, and what stands in their parentheses: verbs, flags and options.

use proc_macro2::{TokenStream, TokenTree};
use quote::{ToTokens, quote};
use syn::{Expr, ExprLit, Ident, Lit, Type};

use super::{
    check::{Model, Relation},
    parse::{Argument, Entry, Value},
    part::{METADATA, Part, part_fits_the_role, part_named_as_a_kind},
};
use crate::{
    codes,
    diagnostics::{Errors, nearest},
};

const VERBS: [&str; 14] = [
    "get",
    "list",
    "watch",
    "create",
    "update",
    "patch",
    "apply",
    "delete",
    "deletecollection",
    "status",
    "scale",
    "eviction",
    "binding",
    "token",
];
/// The flag of `owns`.
const BLOCKING: &str = "block_owner_deletion";
/// The flag of a kind that need not be there.
const OPTIONAL: &str = "optional";
/// The flag of `primary`.
const READ_ONLY: &str = "read_only";
const RELATION_OPTIONS: [&str; 6] = ["map", "when", "index", "selector", "fields", "on"];

/// Whether an option is about one relation.
pub(super) fn is_of_relations(option: &str) -> bool {
    RELATION_OPTIONS.contains(&option)
}

/// Says how one kind is written, or several.
fn no_kind(entry: &Entry, name: &str, errors: &mut Errors) {
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

/// The options on which the role depends, as the user wrote them.
fn narrowed(entry: &Entry) -> impl Iterator<Item = String> {
    entry.arguments.iter().filter_map(|argument| match argument {
        Argument::Option(option, value) if option == "on" => {
            Some(format!("on = {}", value.to_token_stream().to_string().replace(" :: ", "::")))
        }
        Argument::Option(option, value) if option == "fields" => Some(format!("fields = {}", value.to_token_stream())),
        _ => None,
    })
}

pub(super) fn relation(entry: &Entry, model: &mut Model, errors: &mut Errors) {
    let name = entry.name.to_string();
    let Some(Value::Kind(kind)) = &entry.value else {
        no_kind(entry, &name, errors);
        return;
    };
    if part_named_as_a_kind(&name, kind, errors) || named_at_run_time(kind, errors) {
        return;
    }
    let mut relation = Relation {
        role: entry.name.clone(),
        kind: kind.clone(),
        text: format!("{name} = {}", kind.to_token_stream()),
        verbs: Vec::new(),
        calls: Vec::new(),
        on: None,
        part: Part::Whole,
    };
    let place = Place { role: name.clone(), of: relation.text.clone() };
    let (mut given, mut flags) = (Vec::new(), Flags::default());
    for argument in &entry.arguments {
        match argument {
            Argument::Word(word) if flags.take(word, &mut relation, errors) => {}
            Argument::Nested(word, scope) if word == "live" && scope == "cluster" && name == "reads" => {
                relation.role = Ident::new("live_cluster", word.span());
            }
            Argument::As(word, ty) => relation.part.set(Part::View(*word, Box::new(ty.clone())), errors),
            Argument::Word(word) => verb(word, &mut relation.verbs, &place, errors),
            Argument::Everything(star) => place.everything(star, errors),
            Argument::Option(option, value) if place.is_of_verbs(option) => place.no_argument(option, value, errors),
            Argument::Option(option, value) => {
                let call = relation_option(option, value, "", &mut given, errors);
                if option == "on" {
                    relation.on.get_or_insert_with(|| value.clone());
                } else {
                    relation.calls.extend(call);
                }
            }
            Argument::Nested(word, inner) => place.no_parentheses(word, inner, errors),
            Argument::Expr(expr) => place.no_argument(expr, expr, errors),
        }
    }
    verbs_fit_the_role(&relation, errors);
    options_fit_the_role(&relation, &given, errors);
    part_fits_the_role(&relation, errors);
    optional_fits_the_role(&relation, flags.optional, errors);
    let verbs: Vec<_> = relation.verbs.iter().map(ToString::to_string).collect();
    let flag = match relation.role.to_string().as_str() {
        "live" => Some("live".to_owned()),
        "live_cluster" => Some("live(cluster)".to_owned()),
        _ => flags.blocks.map(ToString::to_string),
    };
    let Flags { blocks, optional } = flags;
    relation.calls.extend(blocks.into_iter().chain(optional).map(|flag| quote!(.#flag())));
    let told: Vec<_> = flag
        .into_iter()
        .chain(optional.map(ToString::to_string))
        .chain(relation.part.text())
        .chain(verbs.clone())
        .chain(narrowed(entry))
        .collect();
    if !told.is_empty() {
        relation.text += &format!("({})", told.join(", "));
    }
    if !verbs.is_empty() {
        relation.calls.insert(0, quote!(.verbs(&[#(#verbs),*])));
    }
    model.relations.push(relation);
}

/// The words of a relation that are no verbs and change what it emits.
#[derive(Default)]
struct Flags<'a> {
    blocks: Option<&'a Ident>,
    optional: Option<&'a Ident>,
}

impl<'a> Flags<'a> {
    /// Takes a word that is a flag, also one that is wrong here. Returns `false` for every other word.
    fn take(&mut self, word: &'a Ident, relation: &mut Relation, errors: &mut Errors) -> bool {
        let text = word.to_string();
        match text.as_str() {
            "live" if relation.role == "reads" || relation.role.to_string().starts_with("live") => {
                relation.role = word.clone();
            }
            "live" => errors.push(
                word,
                codes::NEITHER_VERB_NOR_OPTION,
                "only `reads` can be live",
                "write `reads = Kind(live)`",
            ),
            BLOCKING if relation.role == "owns" => self.blocks = Some(word),
            BLOCKING => {
                let help = format!("write `owns = Kind({BLOCKING})`");
                errors.push(word, codes::NEITHER_VERB_NOR_OPTION, "only `owns` writes owner references", &help);
            }
            OPTIONAL if self.optional.is_some() => {
                errors.push(word, codes::DUPLICATE, "`optional` is given twice", "remove one of them");
            }
            OPTIONAL => self.optional = Some(word),
            METADATA => relation.part.set(Part::Metadata(word.clone()), errors),
            _ => return false,
        }
        true
    }
}

pub(super) fn primary(entry: &Entry, model: &mut Model, errors: &mut Errors) {
    if entry.value.is_some() {
        errors.push(
            &entry.name,
            codes::FORM_OF_ANOTHER_OPTION,
            "`primary` takes its verbs in parentheses",
            "write for example `primary(patch)`",
        );
        return;
    }
    let place = Place { role: "primary".into(), of: "primary".into() };
    let mut given = Vec::new();
    for argument in &entry.arguments {
        match argument {
            Argument::Word(word) if word == READ_ONLY => model.read_only = true,
            Argument::Word(word) if word == OPTIONAL => {
                let help =
                    "remove it: a controller of a kind that is not there waits for it, and others of the app go on";
                errors.push(
                    word,
                    codes::NEITHER_VERB_NOR_OPTION,
                    "a primary is not optional: without it there is nothing to reconcile",
                    help,
                );
            }
            Argument::Word(word) if word == METADATA => {
                errors.push(
                    word,
                    codes::PART_OF_AN_OBJECT,
                    "a primary is read whole",
                    "metadata alone is of a kind in `owns`, `watches` or `reads`",
                );
            }
            Argument::Word(word) => verb(word, &mut model.primary_verbs, &place, errors),
            Argument::Everything(star) => place.everything(star, errors),
            Argument::Option(option, value) if place.is_of_verbs(option) => place.no_argument(option, value, errors),
            Argument::Option(option, value) => {
                let call = relation_option(option, value, "primary_", &mut given, errors);
                if option == "on" {
                    model.primary_on.get_or_insert_with(|| value.clone());
                } else {
                    model.calls.extend(call);
                }
            }
            Argument::As(word, _) => {
                errors.push(
                    word,
                    codes::PART_OF_AN_OBJECT,
                    "a primary is read whole",
                    "a view is of a kind in `watches` or `reads`",
                );
            }
            Argument::Nested(word, inner) => place.no_parentheses(word, inner, errors),
            Argument::Expr(expr) => place.no_argument(expr, expr, errors),
        }
    }
    let verbs: Vec<_> = model.primary_verbs.iter().map(ToString::to_string).collect();
    if model.read_only {
        model.calls.push(quote!(.read_only()));
        let writes =
            model.primary_verbs.iter().find(|verb| !["get", "list", "watch"].contains(&verb.to_string().as_str()));
        if let Some(verb) = writes {
            let what = format!("a primary that is only read has no verb `{verb}`");
            errors.push(verb, codes::WITHOUT_EFFECT, &what, &format!("remove `{READ_ONLY}` or `{verb}`"));
        }
    }
    model.calls.push(quote!(.primary(&[#(#verbs),*])));
}

/// A kind without a name has no permissions of its own that could be declared.
pub(super) fn named_at_run_time(kind: &Type, errors: &mut Errors) -> bool {
    let is_dynamic = is_dynamic(kind);
    if is_dynamic {
        let help = "name the kind; what is found at run time is declared by `rbac(rule())`, watched by `env.watches` and changed by \
                    `cx.client()`";
        errors.push(kind, codes::NOT_A_KIND, "`DynamicObject` is any kind, so no role can be derived from it", help);
    }
    is_dynamic
}

pub(super) fn is_dynamic(kind: &Type) -> bool {
    let Type::Path(path) = kind else { return false };
    path.path.segments.last().is_some_and(|last| last.ident == "DynamicObject")
}

/// What is read live has no cache that could be there or not.
fn optional_fits_the_role(relation: &Relation, optional: Option<&Ident>, errors: &mut Errors) {
    let Some(word) = optional.filter(|_| relation.role.to_string().starts_with("live")) else { return };
    let kind = relation.kind.to_token_stream();
    let what = format!("`{kind}` is read live and has no cache: `{OPTIONAL}` has no effect");
    let help = format!("remove `live` or `{OPTIONAL}`; a live read of a kind that is not served fails with 404");
    errors.push(word, codes::WITHOUT_EFFECT, &what, &help);
}

/// What is owned is changed by `cx.owned`, which has no operation for these.
const NOT_OF_OWNED: [&str; 3] = ["binding", "deletecollection", "token"];

fn verbs_fit_the_role(relation: &Relation, errors: &mut Errors) {
    let is_not = |verb: &&Ident| NOT_OF_OWNED.iter().any(|not| *verb == not);
    if relation.role == "owns"
        && let Some(verb) = relation.verbs.iter().find(is_not)
    {
        let help = "write the rule in `rbac(rule())`, and use `cx.client()`";
        errors.push(
            verb,
            codes::NEITHER_VERB_NOR_OPTION,
            &format!("`{verb}` is not an operation on owned objects"),
            help,
        );
    }
}

fn verb(word: &Ident, verbs: &mut Vec<Ident>, place: &Place, errors: &mut Errors) {
    let text = word.to_string();
    if verbs.contains(word) {
        errors.push(word, codes::DUPLICATE, &format!("`{text}` is given twice"), "remove one of them");
        return;
    }
    if VERBS.contains(&text.as_str()) {
        verbs.push(word.clone());
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
        (None, None) => format!("the verbs are {}", VERBS.join(", ")),
    };
    errors.push(word, codes::UNKNOWN_VERB, &format!("`{text}` is not a verb"), &help);
}

/// Words for verbs that are none of Kubernetes, with those that are.
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

/// What others write where they mean every verb.
const EVERYTHING: [&str; 3] = ["all", "any", "everything"];

/// Whose parentheses are read, for messages that say what to write in them.
struct Place {
    /// `owns`.
    role: String,
    /// `owns = Pod`.
    of: String,
}

impl Place {
    /// The words that stand here alone.
    fn words(&self) -> impl Iterator<Item = &'static str> {
        let live: &[&str] = match self.role.as_str() {
            "reads" => &["live", OPTIONAL],
            "primary" => &[],
            _ => &[OPTIONAL],
        };
        VERBS.into_iter().chain(live.iter().copied())
    }

    /// A verb with a value, or a list of verbs with a name.
    fn is_of_verbs(&self, option: &Ident) -> bool {
        let text = option.to_string();
        text.starts_with("verb") || text == "operations" || self.words().any(|word| word == text)
    }

    fn everything(&self, place: impl ToTokens, errors: &mut Errors) {
        let Self { role, of } = self;
        let what = "a rule lists its verbs: all verbs would allow more than is needed";
        let help = match role.as_str() {
            "owns" => format!(
                "write `{of}`, which may create, update, patch, apply and delete, or list the verbs that are used: `{of}(create, delete)`"
            ),
            "primary" => {
                "write the verbs that are used, for example `primary(patch)`; its status may be written in any case"
                    .into()
            }
            _ => format!("write `{of}` to read only, or list the verbs that are used, for example `{of}(patch)`"),
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
        let Self { role, of } = self;
        let example = if role == "owns" { "create" } else { "patch" };
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
        let Self { role, of } = self;
        let is_verb = |word: &Ident| VERBS.iter().any(|verb| word == verb);
        let what = format!("`{word}` takes no parentheses");
        let help = if !is_verb(word) && role == "reads" {
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

/// The words of an expression, also those in texts.
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

/// A kind that is watched needs a mapper, one that triggers nothing needs none and no predicate; one that is not cached has
/// nothing to select or index.
fn options_fit_the_role(relation: &Relation, given: &[Ident], errors: &mut Errors) {
    let (role, kind) = (relation.role.to_string(), relation.kind.to_token_stream());
    if role == "watches" && !given.iter().any(|option| option == "map") {
        let what = "a watched kind needs a mapper from its objects to primaries";
        let help = format!(
            "write `watches = {kind}(map = f)` with a function that returns the keys of the primaries of an object"
        );
        errors.push(&relation.kind, codes::MISSING_MAPPER, what, &help);
    }
    for option in given {
        let text = option.to_string();
        let triggers = text == "map" || text == "when";
        if triggers && role != "owns" && role != "watches" {
            let what = format!("`reads` triggers nothing: `{text}` would never be called");
            errors.push(
                option,
                codes::WITHOUT_EFFECT,
                &what,
                &format!("write `watches = {kind}(map = f)`, or remove `{text}`"),
            );
        } else if role.starts_with("live") && text != "on" {
            let what = format!("`{kind}` is read live and has no cache: `{text}` has no effect");
            errors.push(option, codes::WITHOUT_EFFECT, &what, &format!("remove `live` or `{text}`"));
        }
    }
}

fn relation_option(
    option: &Ident,
    value: &Expr,
    prefix: &str,
    given: &mut Vec<Ident>,
    errors: &mut Errors,
) -> Option<TokenStream> {
    let text = option.to_string();
    if !RELATION_OPTIONS.contains(&text.as_str()) {
        let help = nearest(&text, &RELATION_OPTIONS).map_or_else(
            || format!("the options are {}", RELATION_OPTIONS.join(", ")),
            |known| format!("did you mean `{known}`?"),
        );
        errors.push(option, codes::UNKNOWN_RELATION_OPTION, &format!("a relation has no option `{text}`"), &help);
        return None;
    }
    if given.contains(option) && text != "index" {
        errors.push(option, codes::DUPLICATE, &format!("`{text}` is given twice"), "remove one of them");
        return None;
    }
    given.push(option.clone());
    if let Expr::Lit(ExprLit { lit, .. }) = value {
        let is_text = matches!(lit, Lit::Str(_));
        let wants_text = ["selector", "fields", "on"].contains(&text.as_str());
        if is_text != wants_text {
            let (what, form) = if wants_text { ("a string", "\"…\"") } else { ("a function", "f") };
            errors.push(
                lit,
                codes::STRING_OR_FUNCTION,
                &format!("`{text}` takes {what}"),
                &format!("write `{text} = {form}`"),
            );
            return None;
        }
    }
    let call = Ident::new(&format!("{prefix}{text}"), option.span());
    let path = value.to_token_stream().to_string();
    Some(if text == "index" { quote!(.#call(#value, #path)) } else { quote!(.#call(#value)) })
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
