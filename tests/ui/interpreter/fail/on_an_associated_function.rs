//! The attribute can't add a type next to an associated function.
use kctl::{karmada::prelude::*, prelude::*};

struct Rules;

impl Rules {
    #[interpreter(op = InterpretHealth)]
    fn healthy(_pod: &Pod) -> bool {
        true
    }
}

fn main() {}
