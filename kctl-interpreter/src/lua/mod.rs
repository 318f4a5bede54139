//! The configurable layer: the Lua scripts of `ResourceInterpreterCustomization`s.
//!
//! The types build on each other:
//!
//! - [`Script`]: one compiled script, which defines one function.
//! - [`Pool`]: runs scripts on JSON values within [`Limits`] that no script escapes. Compilation has a bound for the source
//!   alone, [`SOURCE_BYTES_MAX`]. The pool has Karmada's library, conversions and checks of results.
//! - [`Customization`]: the scripts of one object for one kind.
//! - [`Scripts`]: the scripts of all customizations, by kind and operation.
//! - [`Configurable`]: scripts and a pool as a layer of the [`Chain`](crate::chain::Chain).
//!
//! A control plane uses [`Configurable`] alone. [`Script`] and [`Pool`] are for tests of a single
//! script.
//!
//! The source is Karmada's `pkg/resourceinterpreter/customized/declarative/luavm`. It runs scripts
//! with gopher-lua; this crate runs them with Lua 5.1 in C and rewrites their source where the two
//! differ. These differences remain:
//!
//! - Globals do not live on between runs.
//! - `goto` jumps forward only, and not out of an inner loop.
//! - `a, b = b, a` swaps two local variables. In gopher-lua both get the value of `b`.
//! - Error messages of the interpreter name the variable, such as `attempt to index field 'status' (a nil value)`.
//!   gopher-lua's name the key: `attempt to index a non-table object(nil) with key 'ready'`.
//! - A message about `..` names one type, as in `attempt to concatenate a nil value`. gopher-lua's names both types.
//! - `pairs` visits the fields of an input in an order that depends on their names alone. In gopher-lua it is random.
//!
//! ```
//! use kctl_interpreter::lua::{ScriptInputs, Limits, Pool, Script};
//! use serde_json::json;
//!
//! let source = "function InterpretHealth(o) return o.status.ready == o.spec.replicas end";
//! let script = Script::compile(source, "InterpretHealth")?;
//! let object = json!({"kind": "Widget", "spec": {"replicas": 2}, "status": {"ready": 2}});
//! let inputs = ScriptInputs { observed: Some(&object), ..ScriptInputs::default() };
//! let pool = Pool::new(Limits::default());
//! assert_eq!(pool.interpret("InterpretHealth", &script, &inputs)?, json!({"healthy": true}));
//! # Ok::<(), kctl_interpreter::lua::ScriptError>(())
//! ```

mod compile;
mod concat;
mod customization;
mod error;
mod interpret;
mod jump;
mod layer;
mod library;
mod limits;
mod number;
mod order;
mod pool;
mod repair;
mod script;
mod to_json;
mod to_lua;
mod tokens;
mod vm;

pub use customization::{Customization, CustomizationError, Scripts};
pub use error::{ErrorClass, ScriptError};
pub use interpret::{SCRIPT_FUNCTIONS, ScriptFunction, ScriptInputs};
pub use layer::Configurable;
pub use limits::Limits;
pub use pool::Pool;
pub use script::{SOURCE_BYTES_MAX, Script};
