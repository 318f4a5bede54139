//! A CRD has `jsonPath`; the option of a printer column is `json_path`.
use kctl::prelude::*;

#[resource(group = "example.com", version = "v1", kind = "Web", printcolumn(name = "Host", type_ = "string", jsonPath = ".spec.host"))]
pub struct WebSpec {
    pub host: String,
}

fn main() {}
