//! Formats that texts are asked for by name. Upstream: `pkg/cel/library/format.go` of apiserver.

use std::sync::Arc;

use kube_cel::cel::{Value as Cel, objects::Opaque};

use super::{Said, Target, optional, urls};
use crate::{
    format,
    names::{NameRule, check_label_value, check_qualified_name},
};

/// A format, by its name.
#[derive(Debug, PartialEq, Eq)]
struct Format(&'static str);

const NAMES: [&str; 13] = [
    "dns1123Label",
    "dns1123Subdomain",
    "dns1035Label",
    "dns1123LabelPrefix",
    "dns1123SubdomainPrefix",
    "dns1035LabelPrefix",
    "qualifiedName",
    "labelValue",
    "uri",
    "uuid",
    "byte",
    "date",
    "datetime",
];

impl Opaque for Format {
    fn runtime_type_name(&self) -> &'static str {
        "kubernetes.NamedFormat"
    }
}

/// What a function says of a format; none if it is another function.
pub(super) fn called(name: &str, target: &Target<'_>, arguments: &[Cel]) -> Option<Said> {
    let made = |name: &str| {
        let known = NAMES.iter().find(|known| **known == name)?;
        Some(Cel::Opaque(Arc::new(Format(known))))
    };
    match (name, target, arguments) {
        ("named", Target::Library("format"), [Cel::String(name)]) => Some(Ok(optional::made(made(name)))),
        (name, Target::Library("format"), []) => made(name).map(Ok),
        ("validate", Target::Value(Cel::Opaque(of)), [Cel::String(text)]) => {
            let wrong = of.downcast_ref::<Format>()?.wrong(text);
            let texts: Vec<Cel> = wrong.into_iter().map(|why| Cel::String(Arc::new(why))).collect();
            Some(Ok(optional::made((!texts.is_empty()).then(|| Cel::List(Arc::new(texts))))))
        }
        _ => None,
    }
}

impl Format {
    /// What is wrong with a text.
    fn wrong(&self, text: &str) -> Vec<String> {
        let unless = |is_right: bool, why: &str| if is_right { Vec::new() } else { vec![why.to_owned()] };
        match self.0 {
            "dns1123Label" => NameRule::Label.check(text),
            "dns1123Subdomain" => NameRule::Subdomain.check(text),
            "dns1035Label" => NameRule::Label1035.check(text),
            "dns1123LabelPrefix" => NameRule::Label.check_prefix(text),
            "dns1123SubdomainPrefix" => NameRule::Subdomain.check_prefix(text),
            "dns1035LabelPrefix" => NameRule::Label1035.check_prefix(text),
            "qualifiedName" => check_qualified_name(text),
            "labelValue" => check_label_value(text),
            "uri" => urls::wrong(text).into_iter().collect(),
            "uuid" => unless(format::matches("uuid", text), "does not match the UUID format"),
            "byte" => unless(format::matches("byte", text), "invalid base64"),
            "date" => unless(format::matches("date", text), "invalid date"),
            _ => unless(format::matches("datetime", text), "invalid datetime"),
        }
    }
}
