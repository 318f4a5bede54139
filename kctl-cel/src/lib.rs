//! CEL as API servers judge it before they evaluate it: which types expressions have, what is wrong with them, and what the rules
//! of a definition cost at most. Reads texts and schemas, hands on types, issues with their places, and numbers. The embedded API
//! server and the offline check of definitions ask here, so that they say the same; evaluation is that of `kube-cel`.

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
mod formatted;
#[cfg(feature = "check")]
mod issue;
#[cfg(feature = "check")]
mod library;
#[cfg(feature = "check")]
mod literals;
#[cfg(feature = "check")]
mod parser;
#[cfg(feature = "check")]
mod pattern;
#[cfg(feature = "check")]
mod pattern_error;
#[cfg(feature = "check")]
mod program;
#[cfg(feature = "check")]
mod read;
#[cfg(feature = "check")]
mod room;
#[cfg(feature = "check")]
mod times;
#[cfg(feature = "check")]
mod token;
#[cfg(feature = "check")]
mod tree;
#[cfg(feature = "check")]
mod types;

pub use self::names::{escape, is_reserved};
#[cfg(feature = "check")]
pub use self::{
    constant::double,
    cost::{RULE_MAX, TOTAL_MAX, estimate, max_in_request},
    environment::Environment,
    expression::{names, type_of},
    issue::{Issue, Issues, Why, pointer},
    library::forms,
    names::plain_name,
    pattern::pattern,
    pattern_error::why as why_no_pattern,
    program::instantiate,
    read::{read, read_within},
    room::with_room,
    times::{duration, timestamp},
    types::Type,
};
