//! An interpreter is a free function: nothing can be put beside a method.
use kctl::{karmada::prelude::*, prelude::*};

struct Health;

impl Health {
    #[interpreter(op = InterpretHealth)]
    fn of(&self, _pod: &Pod) -> bool {
        true
    }
}

fn main() {}
