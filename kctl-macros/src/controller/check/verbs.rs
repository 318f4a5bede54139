//! Verbs in the parentheses of a kind, and the messages about other forms of them.
//!
//! People bring verbs from roles (`"*"`, `["create"]`), from kubebuilder's markers (`verbs=get;list`) and from other languages
//! (`read`, `remove`). The help answers with the verbs that they named, in the form that belongs here.
//!
//! | written | help |
//! |---|---|
//! | `owns = Pod("create,delete")` | write `owns = Pod(create, delete)` |
//! | `owns = Pod(verbs = [create, patch])` | write `owns = Pod(create, patch)` |
//! | `owns = Pod(status(patch))` | write `owns = Pod(status)` |
//! | `owns = Pod(evict)` | write `owns = Pod(eviction)` |
//! | `reads = Pod(bind)` | write `reads = Pod(binding)` |
//! | `reads = Secret(live = cluster)` | write `reads = Secret(live(cluster))` |
//! | `owns = Pod(metadata = true)` | write `owns = Pod(metadata)` |
//! | `primary(*)` | write the verbs that are used |

use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens;
use syn::{Expr, Ident};

use super::{
    super::model::{DeclaredVerb, RelationKind, Verb},
    part::METADATA,
};
use crate::{
    codes,
    diagnostics::{Errors, closest_match},
};

/// The flag of `reads` for a kind that is read from the API server at each call.
pub(super) const LIVE: &str = "live";
/// The flag of a kind whose CRD may be missing.
pub(super) const OPTIONAL: &str = "optional";
/// The flag of `primary` whose status is not written.
pub(super) const READ_ONLY: &str = "read_only";
/// The flag of `owns` that sets `blockOwnerDeletion` in owner references.
pub(super) const BLOCKING: &str = "block_owner_deletion";

/// Reads one verb. K0022 for a repeated one, K0015 for an unknown one.
pub(super) fn verb(word: &Ident, verbs: &mut Vec<DeclaredVerb>, parentheses: &Parentheses, errors: &mut Errors) {
    let text = word.to_string();
    if verbs.iter().any(|declared| declared.word == *word) {
        errors.push_duplicate(word);
        return;
    }
    if let Some(verb) = Verb::of(&text) {
        verbs.push(DeclaredVerb { verb, word: word.clone() });
        return;
    }
    if WILDCARDS.contains(&text.to_lowercase().as_str()) {
        parentheses.report_wildcard(word, errors);
        return;
    }
    let nearest = closest_match(&text, &parentheses.words().collect::<Vec<_>>());
    let help = match (parentheses.verbs_of_synonym(&text), nearest) {
        (Some(verbs), _) if verbs.is_empty() => {
            let object = if parentheses.subject == Subject::Primary { "the primary" } else { "owned objects" };
            format!("no operation of kctl on {object} uses it: write the rule in `rbac(rule())`, and use `cx.client()`")
        }
        (Some(verbs), _) if text == "bind" => {
            format!("write `{}({verbs})`; the verb `bind` of roles is written in `rbac(rule())`", parentheses.prefix)
        }
        (Some(verbs), _) => format!("write `{}({verbs})`", parentheses.prefix),
        (None, _) if UNSUPPORTED_VERBS.contains(&text.as_str()) => {
            format!("no operation of kctl uses `{text}`: write the rule in `rbac(rule())`, and use `cx.client()`")
        }
        (None, _) if text == "finalizers" => "a declared finalizer includes this permission: remove it".to_owned(),
        (None, Some(candidate)) => format!("did you mean `{candidate}`?"),
        (None, None) => format!("the verbs are {}", Verb::WORDS.join(", ")),
    };
    errors.push(word, codes::UNKNOWN_VERB, &format!("`{text}` is not a verb"), &help);
}

/// Words that people write for a verb, with the verbs to write.
const VERB_SYNONYMS: [(&str, &str); 7] = [
    ("read", "get, list, watch"),
    ("write", "create, update, patch, delete"),
    ("remove", "delete"),
    ("evict", "eviction"),
    ("bind", "binding"),
    ("replace", "update"),
    ("deletecollections", "deletecollection"),
];
/// Verbs and subresources of Kubernetes for which a `Context` has no operation.
const UNSUPPORTED_VERBS: [&str; 13] = [
    "approve",
    "attach",
    "ephemeralcontainers",
    "escalate",
    "exec",
    "impersonate",
    "log",
    "logs",
    "portforward",
    "proxy",
    "resize",
    "sign",
    "use",
];

/// Names that other tools use for all verbs.
const WILDCARDS: [&str; 3] = ["all", "any", "everything"];

/// The owner of the parentheses that are read, for messages that show what to write in them.
pub(super) struct Parentheses {
    /// The object that the verbs are about.
    pub(super) subject: Subject,
    /// The text before the parentheses: `owns = Pod`.
    pub(super) prefix: String,
}

/// The object that the parentheses are about.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Subject {
    /// The primary of the controller.
    Primary,
    /// A related kind. The relation comes from the option; `live` does not change it.
    Related(RelationKind),
}

impl Parentheses {
    /// Returns the words that may be written here alone: verbs, and the flags of the relation.
    fn words(&self) -> impl Iterator<Item = &'static str> {
        let flags: &[&str] = match self.subject {
            Subject::Primary => &[READ_ONLY],
            Subject::Related(RelationKind::Owns) => &[OPTIONAL, METADATA, BLOCKING],
            Subject::Related(RelationKind::Watches) => &[OPTIONAL, METADATA],
            Subject::Related(RelationKind::Reads | RelationKind::ReadsLive | RelationKind::ReadsLiveInCluster) => {
                &[LIVE, OPTIONAL, METADATA]
            }
        };
        Verb::WORDS.iter().filter(move |word| self.has_verb(word)).chain(flags).copied()
    }

    /// Returns `true` for a verb with an operation on the object of these parentheses.
    fn has_verb(&self, word: &str) -> bool {
        Verb::of(word).is_some_and(|verb| match self.subject {
            Subject::Primary => verb.applies_to_primary(),
            Subject::Related(RelationKind::Owns) => verb.applies_to_owned(),
            Subject::Related(_) => true,
        })
    }

    /// Returns the verbs to write for another word, as far as they have an operation here.
    fn verbs_of_synonym(&self, text: &str) -> Option<String> {
        let (_, verbs) = VERB_SYNONYMS.iter().find(|(other, _)| *other == text)?;
        let verbs: Vec<_> = verbs.split(", ").filter(|verb| self.has_verb(verb)).collect();
        Some(verbs.join(", "))
    }

    /// Returns `true` for an option that means verbs: `verbs = [create]`, `operations = …`, or `create = true`.
    pub(super) fn is_verb_in_another_form(&self, option: &Ident) -> bool {
        let text = option.to_string();
        text.starts_with("verb")
            || text == "operations"
            || Verb::of(&text).is_some()
            || self.words().any(|word| word == text)
    }

    /// Reports K0015 for all verbs at once. A role with every verb would allow more than the controller does.
    pub(super) fn report_wildcard(&self, tokens: impl ToTokens, errors: &mut Errors) {
        let Self { subject, prefix } = self;
        let what = "a rule lists its verbs: all verbs would allow more than is needed";
        let help = match subject {
            Subject::Related(RelationKind::Owns) => format!(
                "write `{prefix}`, which may create, update, patch, apply and delete, or list the verbs that are used: `{prefix}(create, delete)`"
            ),
            Subject::Primary => "write the verbs that are used, for example `primary(patch)`".into(),
            Subject::Related(_) => {
                format!("write `{prefix}` to read only, or list the verbs that are used, for example `{prefix}(patch)`")
            }
        };
        errors.push(tokens, codes::UNKNOWN_VERB, what, &help);
    }

    /// Reports K0013 for verbs in another form: `"create"`, `create | delete`, `verbs = [create, delete]`. The help
    /// lists the verbs that it finds in the value.
    pub(super) fn report_not_an_argument(&self, tokens: impl ToTokens, value: &Expr, errors: &mut Errors) {
        let mut words = vec![tokens.to_token_stream().to_string()];
        collect_words(value.to_token_stream(), &mut words);
        let mut allowed: Vec<&str> = Vec::new();
        for word in &words {
            let word = self.words().find(|allowed| word.eq_ignore_ascii_case(allowed));
            allowed.extend(word.filter(|word| !allowed.contains(word)));
        }
        // `live = cluster`, or `"live(cluster)"`.
        if words.iter().any(|word| word == "cluster") {
            allowed.iter_mut().filter(|word| **word == LIVE).for_each(|word| *word = "live(cluster)");
        }
        let Self { subject, prefix } = self;
        let example = if *subject == Subject::Related(RelationKind::Owns) { "create" } else { "patch" };
        let (start, verbs) =
            if allowed.is_empty() { ("write for example", example.to_owned()) } else { ("write", allowed.join(", ")) };
        errors.push(
            tokens,
            codes::NEITHER_VERB_NOR_OPTION,
            "neither a verb nor an option",
            &format!("{start} `{prefix}({verbs})`"),
        );
    }

    /// Reports K0013 for a word with parentheses: `status(patch)`.
    pub(super) fn report_parentheses(&self, word: &Ident, inner: &Ident, errors: &mut Errors) {
        let Self { subject, prefix } = self;
        let is_verb = |word: &Ident| Verb::of(&word.to_string()).is_some();
        let what = format!("`{word}` takes no parentheses");
        let help = if !is_verb(word) && *subject == Subject::Related(RelationKind::Reads) {
            "write `live` or `live(cluster)`".to_owned()
        } else if !is_verb(word) {
            format!("write for example `{prefix}(patch)`")
        } else if is_verb(inner) && inner != word {
            format!("write `{prefix}({word})`; `{inner}` next to it would be a verb of the object itself")
        } else {
            format!("write `{prefix}({word})`")
        };
        errors.push(word, codes::NEITHER_VERB_NOR_OPTION, &what, &help);
    }
}

/// Appends the words of an expression, including those in strings.
fn collect_words(tokens: TokenStream, words: &mut Vec<String>) {
    for token in tokens {
        match token {
            TokenTree::Group(group) => collect_words(group.stream(), words),
            TokenTree::Punct(_) => {}
            token => {
                let text = token.to_string();
                words.extend(text.split(|c: char| !c.is_alphanumeric()).map(ToOwned::to_owned));
            }
        }
    }
}
