//! Static checks of CEL expressions, as an API server makes them before it stores a CRD or a policy.
//!
//! An API server parses, type-checks and estimates an expression when the object with it is created. This crate does
//! the same. So `generate-crds` reports a wrong rule at build time, and the embedded API server rejects it at the same
//! position as a real one. Messages have the same meaning as in cel-go, but not their wording. It does not evaluate
//! expressions: `kube-cel` does.
//!
//! | stage | function | upstream |
//! |---|---|---|
//! | names and types | [`type_of`], in an [`Environment`] | `cel-go/checker`, `cel-go/cel/validator.go` |
//! | cost | [`estimate`], with [`RULE_MAX`] and [`TOTAL_MAX`] | `cel-go/checker/cost.go` |
//! | constants | [`instantiate`] | `cel-go/interpreter/planner.go` |
//! | the tree for evaluation | [`read`](read()) | `cel-go/parser` |
//! | patterns of Go | [`pattern`](pattern()) | Go's standard library |
//! | conversions of numbers | [`double_to_int`], [`double_to_uint`] | `cel-go/common/types/overflow.go` |
//!
#![cfg_attr(feature = "check", doc = "```")]
#![cfg_attr(not(feature = "check"), doc = "```ignore")]
//! use kctl_cel::{Environment, OldSelf, RULE_MAX, SchemaOf, estimate, read, type_of};
//! use serde_json::json;
//!
//! let schema = json!({ "type": "array", "items": { "type": "string" } });
//! let rule = "self.all(host, self.exists_one(other, other == host))";
//! let environment = Environment::for_rule(&schema, SchemaOf::Value, OldSelf::Value).unwrap();
//! assert_eq!(type_of(rule, &environment).unwrap().unwrap().to_string(), "bool");
//! // It compares all pairs of items. Without `maxItems` there may be so many that the CRD is rejected:
//! assert!(estimate(&read(rule).unwrap(), &schema, SchemaOf::Value) > RULE_MAX);
//! ```
//!
//! Without the feature `check`, only the names are left: [`escape`] and [`is_reserved`].

#![cfg_attr(docsrs, feature(doc_cfg))]

mod names;

#[cfg(feature = "check")]
mod check;
#[cfg(feature = "check")]
mod constant;
#[cfg(feature = "check")]
mod cost;
#[cfg(feature = "check")]
mod environment;
#[cfg(feature = "check")]
mod expression;
#[cfg(feature = "check")]
mod format_call;
#[cfg(feature = "check")]
mod issue;
#[cfg(feature = "check")]
mod large_stack;
#[cfg(feature = "check")]
mod lexer;
#[cfg(feature = "check")]
mod library;
#[cfg(feature = "check")]
mod literals;
#[cfg(feature = "check")]
mod parser;
#[cfg(feature = "check")]
mod pattern;
#[cfg(feature = "check")]
mod program;
#[cfg(feature = "check")]
mod read;
#[cfg(feature = "check")]
mod tree;
#[cfg(feature = "check")]
mod types;

pub use self::names::{escape, is_reserved};
#[cfg(feature = "check")]
pub use self::{
    constant::{double_to_int, double_to_uint},
    cost::{RULE_MAX, TOTAL_MAX, estimate, max_in_request},
    environment::{Environment, OldSelf, SchemaOf},
    expression::{names, type_of},
    issue::{Issue, IssueKind, Issues},
    large_stack::with_large_stack,
    library::{CallStyle, forms},
    names::plain_name,
    pattern::{PATTERN_BYTES_MAX, pattern, pattern_within},
    program::instantiate,
    read::{read, read_within},
    types::Type,
};
