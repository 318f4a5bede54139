//! The declaration of a controller, as plain data: `check` builds it from the user's options, `emit` builds code from
//! it.
//!
//! A model has no mistakes, so `emit` can't fail. It keeps the user's words as `Ident`s and types as `Type`s, because
//! their spans are where rustc shows errors in generated code.

use proc_macro2::{Ident, Span};
use syn::{Attribute, Expr, ExprPath, Token, Type, Visibility};

use crate::{crate_path::CratePath, function::type_text};

/// A controller with its kinds and options.
pub(super) struct Model {
    /// The item below the attribute.
    pub(super) form: Form,
    /// The name of the function or the struct.
    pub(super) name: Ident,
    /// The visibility of a function, which its type gets, too.
    pub(super) vis: Visibility,
    /// The doc comments of a function, for its type.
    pub(super) docs: Vec<Attribute>,
    /// The path of the framework.
    pub(super) krate: CratePath,
    /// The kind that the controller reconciles: `Kind` of the parameter `Arc<Kind>`, or of the option `of = Kind`.
    pub(super) primary: Type,
    /// The options that are not about one related kind, in the order of the attribute.
    pub(super) settings: Vec<Setting>,
    /// `owns`, `watches` and `reads`, in the order of the attribute. Their index is part of generated names such as
    /// `__K0`.
    pub(super) relations: Vec<Relation>,
    /// The function of `converged = …`: for an object with `true`, the reconcile after a start is skipped.
    pub(super) converged: Option<Expr>,
    /// The spans of a function's types. `None` for a struct.
    pub(super) signature: Option<Signature>,
}

/// The item below the attribute: a reconcile function, or a struct that implements `Reconcile`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// `async fn name(object: Arc<Kind>, cx: Context<name>) -> Result<Action>`.
    Function,
    /// `struct Name`, with `of = Kind` in the attribute.
    Struct,
}

/// The spans of two types in the signature of a function: errors in generated code about them are shown there.
pub(super) struct Signature {
    /// The span of the second parameter's type.
    pub(super) context: Span,
    /// The span of the return type.
    pub(super) result: Span,
}

/// An option of the controller that is not a relation. `word` is its name in the attribute, and the name of the method
/// of `SpecBuilder` that `emit/calls.rs` calls. So a number or a duration needs no further arm there. The call has the
/// span of the word, where rustc shows a value of another type.
pub(super) enum Setting {
    /// `name = "sites"`: the name in metrics, logs and events. Without it, that is the kind in lower case.
    Name(Expr),
    /// `finalizer = "example.com/name"`: the runtime adds it to each object, and calls `finalize` before it removes
    /// it.
    Finalizer { word: Ident, name: Expr },
    /// `concurrency` or `retries`.
    Number { word: Ident, value: Expr },
    /// `resync` or `timeout`.
    Duration { word: Ident, value: Duration },
    /// `backoff("5ms", max = "1000s")`: the first wait, and the longest one, which is 1000 seconds if it is not
    /// given.
    Backoff { first: Duration, max: Option<Duration> },
    /// `namespaces = ["a", "b"]`: a list, or an expression that returns one.
    Namespaces(Expr),
    /// One `rbac(…)`.
    Rules(Rules),
    /// `primary(…)`.
    Primary(PrimaryOptions),
}

/// A duration as the user wrote it.
pub(super) enum Duration {
    /// `"1m30s"`.
    Millis(u64),
    /// An expression of the type `Duration`.
    Expr(Expr),
}

/// `rbac(rule, …)`, or `rbac(rule, …, on = Edge)` for another cluster. Such a rule gives `cx.client()`, whose
/// requests the macro can't see.
pub(super) struct Rules {
    /// The rules in the order of the attribute. Invariant: at least one, because an empty `rbac()` is an error.
    pub(super) rules: Vec<Rule>,
    /// The cluster. `None` is the cluster of the primary.
    pub(super) on: Option<ExprPath>,
}

/// One `PolicyRule`, in one of the forms of the parser.
pub(super) enum Rule {
    /// `RULE`, a constant.
    Word(Ident),
    /// `rule(GROUP)`, a call with one identifier.
    Call { function: Ident, argument: Ident },
    /// `rule()`, `rules::RULE` or any other expression.
    Expr(Expr),
}

/// The options in `primary(…)`. Without it, the primary is cached, it triggers, and the status of a custom kind may be written.
#[derive(Default)]
pub(super) struct PrimaryOptions {
    /// Verbs of operations on the primary itself: `get` allows `cx.get()`, which reads past the cache.
    pub(super) verbs: Vec<DeclaredVerb>,
    /// The flag `read_only`: no status is written.
    pub(super) is_read_only: bool,
    /// `when`, `index`, `selector`, `fields` and `on`.
    pub(super) options: Vec<DeclaredOption>,
}

/// A related kind with the contents of its parentheses.
pub(super) struct Relation {
    /// The relation, with the live forms of `reads`.
    pub(super) declared_as: RelationKind,
    /// The type as the user wrote it.
    pub(super) kind: Type,
    /// The verbs in the order of the attribute. Without any, `owns` grants what `converge` needs, and the others only
    /// read.
    pub(super) verbs: Vec<DeclaredVerb>,
    /// Options in the order of the attribute. Only `index` may be repeated.
    pub(super) options: Vec<DeclaredOption>,
    /// The flag `block_owner_deletion`.
    pub(super) blocking: Option<Ident>,
    /// The flag `optional`.
    pub(super) optional: Option<Ident>,
    /// The part of each object that the cache keeps.
    pub(super) part: Part,
}

/// The relation of a kind to the controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RelationKind {
    /// `owns = Kind`: objects with a controller reference to the primary.
    Owns,
    /// `watches = Kind(map = f)`: changes trigger the primaries that the mapper returns.
    Watches,
    /// `reads = Kind`: cached, and changes trigger nothing.
    Reads,
    /// `reads = Kind(live)`: read from the API server at each call, without a cache.
    ReadsLive,
    /// `reads = Kind(live(cluster))`: the same in all namespaces.
    ReadsLiveInCluster,
}

/// The part of each object that is cached.
pub(super) enum Part {
    /// The whole object.
    Whole,
    /// `metadata`.
    Metadata(Ident),
    /// `as = Type`.
    View(Token![as], Box<Type>),
}

/// A verb with its word in the attribute.
#[derive(Clone)]
pub(super) struct DeclaredVerb {
    /// The meaning of the word.
    pub(super) verb: Verb,
    /// The word, or one with the span of the attribute for an implied verb.
    pub(super) word: Ident,
}

/// An option of a relation with its word and its value. The value is a function, or a string for `selector`, `fields`
/// and `on`.
pub(super) struct DeclaredOption {
    /// The meaning of the word.
    pub(super) option: RelationOption,
    /// The word in the attribute.
    pub(super) word: Ident,
    /// The value after `=`, which rustc checks unless it is a literal.
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

            pub(super) fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)*
                }
            }
        }
    };
}

words! {
    /// A verb of a role, the subresource that an operation of kctl needs, or `apply`, which is two verbs of a role.
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

impl Verb {
    /// Returns `true` if a request with this verb sends a whole object, which neither a view nor metadata is.
    pub(super) fn sends_whole_object(self) -> bool {
        matches!(self, Self::Create | Self::Update)
    }

    /// Returns `true` if `cx.owned` has an operation with this verb, or its cache needs it.
    pub(super) fn applies_to_owned(self) -> bool {
        !matches!(self, Self::Binding | Self::DeleteCollection | Self::Token)
    }

    /// Returns `true` if a `Context` has an operation on the primary with this verb, or its cache needs it.
    pub(super) fn applies_to_primary(self) -> bool {
        matches!(self, Self::Get | Self::List | Self::Watch | Self::Patch | Self::Delete | Self::Status | Self::Scale)
    }
}

impl RelationKind {
    /// Returns the kind of relation that an option of the attribute declares; `None` for any other option.
    pub(super) fn of(option: &Ident) -> Option<Self> {
        match option.to_string().as_str() {
            "owns" => Some(Self::Owns),
            "watches" => Some(Self::Watches),
            "reads" => Some(Self::Reads),
            _ => None,
        }
    }

    /// Returns the option of the attribute.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Owns => "owns",
            Self::Watches => "watches",
            Self::Reads | Self::ReadsLive | Self::ReadsLiveInCluster => "reads",
        }
    }

    /// Returns `true` if objects are read from the API server at each call, without a cache.
    pub(super) fn is_live(self) -> bool {
        matches!(self, Self::ReadsLive | Self::ReadsLiveInCluster)
    }

    /// Returns `true` if a change of an object triggers reconciles of primaries. `reads` never does.
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
            Some(Expr::Path(path)) if self.declared_as != RelationKind::Owns => Some(path),
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
            Self::View(_, ty) => Some(format!("as = {}", type_text(ty))),
        }
    }
}

/// Returns the value of `on = …`: a path to a type that names a cluster, or a string.
fn on(options: &[DeclaredOption]) -> Option<&Expr> {
    options.iter().find(|declared| declared.option == RelationOption::On).map(|declared| &declared.value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_as_they_are_written() {
        for word in Verb::WORDS {
            assert_eq!(Verb::of(word).map(Verb::as_str), Some(*word));
        }
        for word in RelationOption::WORDS {
            assert_eq!(RelationOption::of(word).map(RelationOption::as_str), Some(*word));
        }
        for word in ["owns", "watches", "reads"] {
            let ident = Ident::new(word, Span::call_site());
            assert_eq!(RelationKind::of(&ident).map(RelationKind::as_str), Some(word));
        }
    }
}
