//! A declaration without mistakes, as plain data: `check` makes it of what was written, `emit` makes tokens of it.

use proc_macro2::{Ident, Span};
use quote::ToTokens;
use syn::{Attribute, Expr, ExprPath, Token, Type, Visibility};

use crate::crate_path::CratePath;

/// A controller.
pub(super) struct Model {
    pub(super) form: Form,
    pub(super) name: Ident,
    pub(super) vis: Visibility,
    pub(super) docs: Vec<Attribute>,
    pub(super) krate: CratePath,
    pub(super) primary: Type,
    /// The options that are not about one related kind, in the order of the attribute.
    pub(super) settings: Vec<Setting>,
    pub(super) relations: Vec<Relation>,
    /// `converged = …`.
    pub(super) converged: Option<Expr>,
    /// `None` for a struct.
    pub(super) signature: Option<Signature>,
}

/// The item that the attribute stands on.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Function,
    Struct,
}

/// The places of two types in the head of a function: rustc shows errors in generated code there.
pub(super) struct Signature {
    pub(super) context: Span,
    pub(super) result: Span,
}

/// An option of the controller. `word` is its name in the attribute, for the place of errors.
pub(super) enum Setting {
    Name(Expr),
    Finalizer {
        word: Ident,
        name: Expr,
    },
    /// `concurrency` or `retries`.
    Number {
        word: Ident,
        value: Expr,
    },
    /// `resync` or `timeout`.
    Duration {
        word: Ident,
        value: Duration,
    },
    Backoff {
        first: Duration,
        max: Option<Duration>,
    },
    Namespaces(Expr),
    Rules(Rules),
    Primary(PrimaryOptions),
}

/// A duration as it was written.
pub(super) enum Duration {
    /// `"1m30s"`.
    Millis(u64),
    /// An expression of the type `Duration`.
    Expr(Expr),
}

/// `rbac(rule, …)` or `rbac(rule, …, on = Edge)`.
pub(super) struct Rules {
    pub(super) rules: Vec<Rule>,
    /// The cluster; that of the primary without one.
    pub(super) on: Option<ExprPath>,
}

/// One `PolicyRule`.
pub(super) enum Rule {
    Word(Ident),
    /// `rule(GROUP)`.
    Call {
        function: Ident,
        argument: Ident,
    },
    Expr(Expr),
}

/// `primary(…)`.
#[derive(Default)]
pub(super) struct PrimaryOptions {
    pub(super) verbs: Vec<DeclaredVerb>,
    pub(super) is_read_only: bool,
    pub(super) options: Vec<DeclaredOption>,
}

/// A related kind.
pub(super) struct Relation {
    pub(super) role: Role,
    pub(super) kind: Type,
    pub(super) verbs: Vec<DeclaredVerb>,
    /// Options in the order of the attribute.
    pub(super) options: Vec<DeclaredOption>,
    /// The flag `block_owner_deletion`.
    pub(super) blocking: Option<Ident>,
    /// The flag `optional`.
    pub(super) optional: Option<Ident>,
    pub(super) part: Part,
}

/// The relation of a kind to the controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Owns,
    Watches,
    Reads,
    /// `reads = Kind(live)`: read from the API server at each call, without a cache.
    ReadsLive,
    /// `reads = Kind(live(cluster))`: the same in all namespaces.
    ReadsLiveInCluster,
}

/// The part of each object that is cached.
pub(super) enum Part {
    Whole,
    /// `metadata`.
    Metadata(Ident),
    /// `as = Type`.
    View(Token![as], Box<Type>),
}

/// A verb with its word in the attribute: rustc shows errors about a missing permission there.
#[derive(Clone)]
pub(super) struct DeclaredVerb {
    pub(super) verb: Verb,
    pub(super) word: Ident,
}

/// An option of a relation with its word and its value.
pub(super) struct DeclaredOption {
    pub(super) option: RelationOption,
    pub(super) word: Ident,
    pub(super) value: Expr,
}

/// Defines an enum of words, with all of them and the conversion from and to a string.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident: $($variant:ident = $text:literal,)*) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(super) enum $name {
            $($variant,)*
        }

        impl $name {
            /// The words as users write them.
            pub(super) const WORDS: &[&'static str] = &[$($text),*];

            pub(super) fn of(word: &str) -> Option<Self> {
                match word {
                    $($text => Some(Self::$variant),)*
                    _ => None,
                }
            }

            pub(super) fn word(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)*
                }
            }
        }
    };
}

words! {
    /// A verb of a role, or the subresource that an operation of kctl needs.
    Verb:
    Get = "get",
    List = "list",
    Watch = "watch",
    Create = "create",
    Update = "update",
    Patch = "patch",
    Apply = "apply",
    Delete = "delete",
    DeleteCollection = "deletecollection",
    Status = "status",
    Scale = "scale",
    Eviction = "eviction",
    Binding = "binding",
    Token = "token",
}

words! {
    /// An option in the parentheses of a kind.
    RelationOption:
    Map = "map",
    When = "when",
    Index = "index",
    Selector = "selector",
    Fields = "fields",
    On = "on",
}

impl Role {
    /// Returns the role of an option of the attribute; `None` for any other option.
    pub(super) fn of(option: &Ident) -> Option<Self> {
        match option.to_string().as_str() {
            "owns" => Some(Self::Owns),
            "watches" => Some(Self::Watches),
            "reads" => Some(Self::Reads),
            _ => None,
        }
    }

    /// Returns the option of the attribute.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Owns => "owns",
            Self::Watches => "watches",
            Self::Reads | Self::ReadsLive | Self::ReadsLiveInCluster => "reads",
        }
    }

    /// Returns `true` if objects are read from the API server, without a cache.
    pub(super) fn is_live(self) -> bool {
        matches!(self, Self::ReadsLive | Self::ReadsLiveInCluster)
    }

    /// Returns `true` if a change of an object triggers reconciles.
    pub(super) fn triggers(self) -> bool {
        matches!(self, Self::Owns | Self::Watches)
    }
}

impl Model {
    /// Returns what `primary(…)` declares.
    pub(super) fn primary_options(&self) -> Option<&PrimaryOptions> {
        self.settings.iter().find_map(|setting| match setting {
            Setting::Primary(options) => Some(options),
            _ => None,
        })
    }

    /// Returns the cluster of the primary: `primary(on = …)`.
    pub(super) fn primary_on(&self) -> Option<&Expr> {
        self.settings.iter().find_map(|setting| match setting {
            Setting::Primary(options) => on(&options.options),
            _ => None,
        })
    }

    /// Returns all `rbac(…)`.
    pub(super) fn rules(&self) -> impl Iterator<Item = &Rules> {
        self.settings.iter().filter_map(|setting| match setting {
            Setting::Rules(rules) => Some(rules),
            _ => None,
        })
    }
}

impl Relation {
    /// Returns `on = …`.
    pub(super) fn on(&self) -> Option<&Expr> {
        on(&self.options)
    }

    /// Returns the type that names the cluster: the kind is then used through `cx.cluster`. An owned
    /// kind has none, because it is in the cluster of the primary.
    pub(super) fn cluster(&self) -> Option<&ExprPath> {
        match self.on() {
            Some(Expr::Path(path)) if self.role != Role::Owns => Some(path),
            _ => None,
        }
    }
}

impl Part {
    /// Returns the form in the parentheses.
    pub(super) fn text(&self) -> Option<String> {
        match self {
            Self::Whole => None,
            Self::Metadata(word) => Some(word.to_string()),
            Self::View(_, ty) => Some(format!("as = {}", ty.to_token_stream())),
        }
    }
}

fn on(options: &[DeclaredOption]) -> Option<&Expr> {
    options.iter().find(|declared| declared.option == RelationOption::On).map(|declared| &declared.value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_as_they_are_written() {
        for word in Verb::WORDS {
            assert_eq!(Verb::of(word).map(Verb::word), Some(*word));
        }
        for word in RelationOption::WORDS {
            assert_eq!(RelationOption::of(word).map(RelationOption::word), Some(*word));
        }
        for word in ["owns", "watches", "reads"] {
            let ident = Ident::new(word, Span::call_site());
            assert_eq!(Role::of(&ident).map(Role::word), Some(word));
        }
    }
}
