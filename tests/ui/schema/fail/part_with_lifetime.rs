//! An object owns its fields, so a part has no lifetime.
use std::borrow::Cow;

use kctl::prelude::*;

#[schema]
pub struct Part<'a> {
    pub host: Cow<'a, str>,
}

fn main() {}
