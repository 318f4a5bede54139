//! The attribute can't add a type next to a method.
use kctl::{karmada::prelude::*, prelude::*};

struct Health;

impl Health {
    #[interpreter(op = InterpretHealth)]
    fn of(&self, _pod: &Pod) -> bool {
        true
    }
}

fn main() {}
