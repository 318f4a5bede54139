//! Scripts in Lua: their library, their limits, and their answers as recorded from Karmada.
#![cfg(feature = "lua")]

mod lua_cases;
mod lua_clock;
mod lua_library;
mod lua_limits;
