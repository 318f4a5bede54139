//! CEL expressions: compiles and evaluates them for admission, CRDs and validation.
//!
//! An expression passes through these modules: `bounds` rejects sources that are too long or deep, and `conditions`
//! parses and caches them. `cost` charges them for the values of their variables, and `evaluate/` evaluates them.
//! `functions` and `messages` add what the evaluator lacks.
//!
//! Limits are checked in this order: source length and nesting (`bounds`), then the cost of loops for the actual
//! variables (`cost`). Then follow the budget that several expressions share (`Budget`), and the cost of each call
//! during evaluation (`evaluate`).

mod bounds;
pub(crate) mod conditions;
pub(crate) mod cost;
mod functions;
mod messages;

pub(crate) use self::{
    bounds::exceeded_limit,
    conditions::{Cel, Code, Problem, Scope, compile, problem, to_cel, tree, type_of},
    functions::{duration, map, timestamp},
};
