//! The configurable layer: the Lua scripts of `ResourceInterpreterCustomization`s.
