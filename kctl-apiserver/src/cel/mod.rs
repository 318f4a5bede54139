//! CEL expressions: compiles and evaluates them for admission, CRDs and validation.

mod bounds;
pub(crate) mod conditions;
pub(crate) mod cost;
mod functions;
mod messages;

pub(crate) use self::{
    bounds::beyond,
    conditions::{Cel, Code, Problem, Scope, compile, problem, to_cel, tree, type_of},
    functions::{duration, timestamp},
};
