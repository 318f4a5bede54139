//! The configurable layer: the Lua scripts of `ResourceInterpreterCustomization`s.
//!
//! [`Scripts`] holds those of all kinds. A [`Script`] is compiled once; a [`Pool`] runs it on JSON values with the library, the conversions and the results
//! of Karmada (`pkg/resourceinterpreter/customized/declarative/luavm`), within [`Limits`] that no script escapes.
//!
//! Differences from Karmada, whose interpreter is gopher-lua: globals do not live on between runs; `goto` only jumps
//! forward and not out of an inner loop; `a, b = b, a` swaps; messages of the interpreter name variables instead of
//! keys, or none for `..`. `pairs` visits the names of a table
//! that the script built in the order in which they were set, as there; those of an input in one that depends on the
//! names alone, where there it is random.
//!
//! ```
//! use kctl_interpreter::lua::{Inputs, Limits, Pool, Script};
//! use serde_json::json;
//!
//! let source = "function InterpretHealth(o) return o.status.ready == o.spec.replicas end";
//! let script = Script::compile(source, "InterpretHealth")?;
//! let object = json!({"kind": "Widget", "spec": {"replicas": 2}, "status": {"ready": 2}});
//! let inputs = Inputs { observed: Some(&object), ..Inputs::default() };
//! let pool = Pool::new(Limits::default());
//! assert_eq!(pool.interpret("InterpretHealth", &script, &inputs)?, json!({"healthy": true}));
//! # Ok::<(), kctl_interpreter::lua::ScriptError>(())
//! ```

mod concat;
mod convert;
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
mod tokens;
mod vm;

pub use customization::{Customization, CustomizationError, Scripts};
pub use error::{ErrorClass, ScriptError};
pub use interpret::{Inputs, OPERATIONS, Operation};
pub use layer::Configurable;
pub use limits::Limits;
pub use pool::Pool;
pub use script::{SOURCE_BYTES_MAX, Script};
