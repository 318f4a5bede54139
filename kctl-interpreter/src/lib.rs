//! Karmada's Resource Interpreter Framework: operations on objects of any kind, answered by the first layer that has a rule.

#[cfg(any(feature = "lua", feature = "hook"))]
mod canonical;
pub mod chain;
pub mod dependency;
pub mod division;
#[cfg(feature = "function")]
pub mod function;
#[cfg(any(feature = "registry", feature = "webhook"))]
#[cfg(feature = "hook")]
pub mod hook;
pub mod kind;
#[cfg(feature = "lua")]
pub mod lua;
mod name;
pub mod native;
pub mod operation;
pub mod quantity;
#[cfg(feature = "registry")]
pub mod registry;
#[cfg(feature = "thirdparty")]
pub mod thirdparty;
mod typed;
#[cfg(feature = "webhook")]
pub mod webhook;
