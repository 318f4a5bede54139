//! Errors for types whose CRD would be invalid: each names the type, the field and a remedy.

#![expect(unreachable_pub, reason = "kinds are public where users declare them")]

use kctl::{
    Json,
    manifest::{Descriptions, KindSpec, definitions},
    prelude::*,
};

/// Declares a kind in a separate module.
macro_rules! kind {
    ($module:ident: $(options($($option:tt)*))? { $($body:tt)* } $($more:item)*) => {
        mod $module {
            #[allow(unused_imports, reason = "not every kind needs all of them")]
            use super::*;

            #[resource(group = "example.com", version = "v1", kind = "Web", namespaced $(, $($option)*)?)]
            pub struct WebSpec { $($body)* }
            $($more)*
        }
    };
}

kind!(tagged: { pub source: Source }
    #[schema]
    #[serde(tag = "type")]
    pub enum Source { Secret { name: String }, File { path: String } }
);
kind!(tagged_clash: { pub source: Source }
    #[schema]
    #[serde(tag = "type")]
    pub enum Source { Secret { name: String }, File { name: i32 } }
);
kind!(tagged_clash_below: { pub source: Source }
    #[schema]
    #[serde(tag = "kind", content = "spec")]
    pub enum Source { Secret(Secret), File(File) }
    #[schema]
    pub struct Secret { pub at: Vec<String> }
    #[schema]
    pub struct File { pub at: Vec<bool> }
);
kind!(flattened_clash: {
    pub name: String,
    #[serde(flatten)]
    pub source: Source,
}
    #[schema]
    #[serde(untagged)]
    pub enum Source { Secret { name: i32 }, File { path: String } }
);
kind!(flattened_twice: {
    pub bind_port: u16,
    #[serde(flatten)]
    pub net: Net,
}
    #[schema]
    pub struct Net { pub bind_port: u16, pub host: String }
);
kind!(tagged_twice: { pub outer: Outer }
    #[schema]
    #[serde(tag = "type")]
    pub enum Outer { A(Inner), B { b: i32 } }
    #[schema]
    #[serde(tag = "type")]
    pub enum Inner { C { c: i32 }, D { d: i32 } }
);
kind!(unknown_format: {
    #[kctl(format = "semver")]
    pub version: String,
});
kind!(bound_beyond_the_type: {
    #[kctl(minimum = 3000000000)]
    pub count: i32,
});
kind!(untagged: { pub port: Port }
    #[schema]
    #[serde(untagged)]
    pub enum Port { Number(i32), Name(String) }
);
kind!(untagged_objects: { pub port: Port }
    #[schema]
    #[serde(untagged)]
    pub enum Port { Number(i32), Full { name: String } }
);
kind!(unit_and_fields: { pub mode: Mode }
    #[schema]
    pub enum Mode { Off, On { level: i32 } }
);
kind!(conflict: { pub mode: Mode }
    #[schema]
    #[serde(untagged)]
    pub enum Mode { A { level: i32 }, B { level: String } }
);
kind!(recursive: { pub tree: Tree }
    #[schema]
    pub struct Tree { pub children: Vec<Tree> }
);
kind!(anything: { pub value: Json });
kind!(tuple: { pub pair: (i32, String) });
kind!(exclusive: {
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub count: i32
});
kind!(unknown_field: {
    #[kctl(rule("self.nam != ''"))]
    pub port: Port,
}
    #[schema]
    pub struct Port { pub name: String }
);
kind!(no_cel: {
    #[kctl(rule("self >"))]
    pub count: i32,
});
kind!(not_a_truth: {
    #[kctl(rule("self + 1"))]
    pub count: i32,
});
kind!(too_dear: {
    #[kctl(rule("self.all(a, self.exists_one(b, a == b))"))]
    pub hosts: Vec<String>,
});
kind!(old_item: {
    #[kctl(items(immutable))]
    pub hosts: Vec<String>,
});
kind!(column: options(printcolumn(json_path = ".spec.replica", name = "Replicas", type_ = "integer")) { pub replicas: i32 });
kind!(column_without_dot: options(printcolumn = r#"{ "jsonPath": "spec.replicas", "name": "Replicas", "type": "integer" }"#) { pub replicas: i32 });
kind!(scale: options(status = "WebStatus", scale(spec_replicas_path = ".spec.count", status_replicas_path = ".status.replicas")) {
    pub replicas: i32,
}
    #[schema]
    pub struct WebStatus { pub replicas: i32 }
);
kind!(selectable: options(selectable = ".spec.hosts") { pub hosts: Vec<String> });
kind!(length_of_a_number: {
    #[kctl(min_length = 1)]
    pub count: i32,
});
kind!(bounds: {
    #[schemars(range(min = 5, max = 1))]
    pub count: i32,
});
kind!(default_out_of_bounds: {
    #[kctl(minimum = 1)]
    #[serde(default)]
    pub count: i32,
});
kind!(pattern: {
    #[kctl(pattern = "(?=a)")]
    pub name: String,
});
kind!(set_of_objects: {
    #[kctl(list = set)]
    pub ports: Vec<Port>,
}
    #[schema]
    pub struct Port { pub name: String }
);
kind!(key_that_is_none: {
    #[kctl(list = map("id"))]
    pub ports: Vec<Port>,
}
    #[schema]
    pub struct Port { pub name: String }
);
kind!(key_that_can_be_missing: {
    #[kctl(list = map("name"))]
    pub ports: Vec<Port>,
}
    #[schema]
    pub struct Port { pub name: Option<String> }
);
kind!(long_name: options(plural = "websthatareveryveryveryveryveryveryveryveryveryveryverylongindeed") { pub a: i32 });
kind!(one_of_unknown: {
    #[kctl(exactly_one_of("secret", "file"))]
    pub source: Source,
}
    #[schema]
    pub struct Source { pub secret: Option<String>, pub path: Option<String> }
);

fn message(kinds: &[KindSpec]) -> String {
    match definitions(kinds, Descriptions::Own) {
        Ok(_) => "nothing".into(),
        Err(error) => error.to_string(),
    }
}

#[test]
fn each_error_names_type_field_and_fix() {
    macro_rules! cases {
        ($($module:ident: $wanted:literal,)*) => {
            [$((stringify!($module), KindSpec::of::<$module::Web>(), $wanted)),*]
        };
    }
    let cases = cases![
        tagged: "nothing",
        tagged_clash: "Source: `name` can't be one field: it is of type string in one variant and of type integer in another; give `name` one type in all variants, or rename it in one",
        tagged_clash_below: "Source: `spec.at[]` can't be one field: it is of type string in one variant and of type boolean in another; give `at` one type in all variants, or rename it in one",
        flattened_clash: "WebSpec: `name` can't be one field: it is also a field next to the enum; rename one of the two",
        flattened_twice: "WebSpec: `bindPort` is a field of the struct and of the flattened `net: Net`, and one of the two is lost; rename one of the two",
        tagged_twice: "Outer: `type` can't be one field: it is also a field next to the enum; rename one of the two",
        unknown_format: "WebSpec.version (spec.version): API servers do not know the format `semver`: they ignore it, and warn at each apply; write `pattern = \"…\"`, or leave `format` out",
        bound_beyond_the_type: "WebSpec.count (spec.count): minimum 3000000000.0 is out of the range of int32, and API servers reject every value; write a bound within the range of the type, or remove it",
        untagged: "Port: the variants are of types integer and string; an API server takes one; write `#[kctl(int_or_string)]` on the field, or use `IntOrString`",
        untagged_objects: "Port: the variants are of types integer and object; an API server takes one; make a struct with an optional field for each variant, and say `#[kctl(exactly_one_of(…))]` on it; or write `#[kctl(schemaless)]` on the field",
        unit_and_fields: "Mode: the variants are of types string and object; an API server takes one; give the variants without fields empty ones (`Off {}`), so that all of them are objects",
        conflict: "Mode: `level` can't be one field: it is of type integer in one variant and of type string in another; give `level` one type in all variants, or rename it in one",
        recursive: "Tree: the type contains itself, which a CRD can't express; write `#[kctl(schemaless)]` on the field that holds it",
        anything: "WebSpec.value (spec.value): the value has no type; write `#[kctl(schemaless)]` where any value goes, or `#[kctl(type_ = \"…\")]`",
        tuple: "WebSpec.pair: the fields of a tuple have no names, which a CRD can't express; use a struct",
        exclusive: "WebSpec.count: API servers don't support a numeric `exclusiveMinimum`; write `#[kctl(exclusive_minimum = 0)]`",
        unknown_field: "WebSpec.port (spec.port): the rule `self.nam != ''`: unknown field `nam`; the fields are name",
        no_cel: "WebSpec.count (spec.count): the rule `self >`: it is not valid CEL: 1:7: ",
        not_a_truth: "WebSpec.count (spec.count): the rule `self + 1`: a rule is of type bool, and this is of type int; compare something",
        too_dear: "times what a rule may; say how many there can be: `max_items`, `max_properties` and `max_length` on the fields that it reads and on the lists above",
        old_item: "WebSpec.hosts (spec.hosts[]): the rule `self == oldSelf`: `oldSelf` is used where old and new items of a list cannot be distinguished; write `#[kctl(list = map(\"…\"))]` on the list, or the rule above the list",
        column: "printcolumn `Replicas`: the path `.spec.replica` names no field: `.spec` has no field `replica`; write it from the object, as `.spec.name`, with the names of JSON",
        column_without_dot: "printcolumn `Replicas`: the path `spec.replicas` does not start with a dot; write `json_path = \".spec.replicas\"`",
        scale: "scale, spec_replicas_path: the path `.spec.count` names no field: `.spec` has no field `count`; write for example `.spec.replicas`",
        selectable: "selectable: `.spec.hosts` is not a string, an integer or a boolean; select by such a field",
        length_of_a_number: "WebSpec.count (spec.count): `minLength` has no effect on a value of type integer; remove it, or write it in `items(…)` or `values(…)`",
        bounds: "WebSpec.count (spec.count): no value has minimum 5 and maximum 1; make the upper bound the larger one",
        default_out_of_bounds: "WebSpec.count (spec.count): the default 0 is not a value of its field: it is out of bounds; write another default",
        pattern: "WebSpec.name (spec.name): `(?=a)` is not a regular expression: look-around, including look-ahead and look-behind, is not supported; write one that Go's regexp reads",
        set_of_objects: "WebSpec.ports (spec.ports): items of a set are compared as a whole; write `#[kctl(map = atomic)]` on the type of the items, or `list = map(\"…\")` on the list",
        key_that_is_none: "WebSpec.ports (spec.ports): its items have no field `id`; write the name as in JSON",
        key_that_can_be_missing: "WebSpec.ports (spec.ports): the key `name` can be missing; use a type other than `Option` for `name`, or write `#[kctl(default = …)]` on it",
        long_name: "names.plural: `websthatareveryveryveryveryveryveryveryveryveryveryverylongindeed` is longer than 63 characters; write a shorter or simpler `plural = \"…\"`",
        one_of_unknown: "unknown field `file`; the fields are path, secret",
    ];
    let mut different = Vec::new();
    for (name, kind, wanted) in cases {
        let message = message(&[kind]);
        if !message.contains(wanted) {
            different.push(format!("{name}\n  wanted: {wanted}\n  found: {message}"));
        }
    }
    assert!(different.is_empty(), "{}", different.join("\n"));
}

mod other {
    use super::*;

    #[resource(group = "example.com", version = "v2", kind = "Web", namespaced)]
    pub struct WebSpec {
        pub replicas: i32,
    }

    pub mod unstored {
        use super::*;

        #[resource(group = "example.com", version = "v3", kind = "Web", namespaced, storage = false)]
        pub struct WebSpec {
            pub replicas: i32,
        }
    }

    pub mod everywhere {
        use super::*;

        #[resource(group = "example.com", version = "v4", kind = "Web", storage = false)]
        pub struct WebSpec {
            pub replicas: i32,
        }
    }

    /// The same version as `plain` with another schema.
    pub mod again {
        use super::*;

        #[resource(group = "example.com", version = "v1", kind = "Web", namespaced)]
        pub struct WebSpec {
            pub hosts: Vec<String>,
        }
    }

    pub mod irregular {
        use super::*;

        #[resource(group = "example.com", version = "v8", kind = "Web", plural = "webz", namespaced, storage = false)]
        pub struct WebSpec {
            pub replicas: i32,
        }
    }

    /// Another kind with the plural and the version of `plain`.
    pub mod same_plural {
        use super::*;

        #[resource(group = "example.com", version = "v1", kind = "Page", plural = "webs", namespaced)]
        pub struct PageSpec {
            pub replicas: i32,
        }
    }

    /// The same kind as `unstored` with other names.
    pub mod named {
        use super::*;

        #[resource(group = "example.com", version = "v5", kind = "Web", namespaced, storage = false, shortname = "w")]
        pub struct WebSpec {
            pub replicas: i32,
        }
    }

    pub mod named_again {
        use super::*;

        #[resource(
            group = "example.com",
            version = "v1",
            kind = "Web",
            namespaced,
            shortname = "wb",
            label("team", "a")
        )]
        pub struct WebSpec {
            pub replicas: i32,
        }
    }

    pub mod labelled {
        use super::*;

        #[resource(
            group = "example.com",
            version = "v6",
            kind = "Web",
            namespaced,
            storage = false,
            label("team", "b")
        )]
        pub struct WebSpec {
            pub replicas: i32,
        }
    }

    pub mod filed {
        use super::*;

        #[resource(group = "example.com", version = "v7", kind = "Web", namespaced, storage = false, category = "all")]
        pub struct WebSpec {
            pub replicas: i32,
        }
    }

    pub mod plain {
        use super::*;

        #[resource(group = "example.com", version = "v1", kind = "Web", namespaced)]
        pub struct WebSpec {
            pub replicas: i32,
        }
    }
}

#[test]
fn incompatible_crd_versions_are_rejected_with_fix() {
    let plain = KindSpec::of::<other::plain::Web>;
    let unstored = KindSpec::of::<other::unstored::Web>;
    for (kinds, wanted) in [
        (
            vec![plain(), KindSpec::of::<other::Web>()],
            "are both the storage version; write `storage = false` in all of them but one",
        ),
        (vec![unstored()], "is the storage version; leave out `storage = false` in one of them"),
        (vec![plain(), KindSpec::of::<other::everywhere::Web>()], "differ in scope; write the same in both"),
        (
            vec![plain(), KindSpec::of::<other::again::Web>()],
            "use one type in both places, or give one of them another `version`",
        ),
    ] {
        let message = message(&kinds);
        assert!(message.starts_with("the versions of webs.example.com do not fit together: "), "{message}");
        assert!(message.ends_with(wanted), "{message}");
    }
    assert_eq!(message(&[plain(), unstored(), plain()]), "nothing");
    let text = message(&[plain(), KindSpec::of::<other::same_plural::Page>()]);
    assert!(text.ends_with("share the plural `webs`: give one of them another `plural`"), "{text}");
    let text = message(&[plain(), KindSpec::of::<other::irregular::Web>()]);
    assert!(text.starts_with("the versions of Web.example.com do not fit together: "), "{text}");
    assert!(text.ends_with("have the plurals `webs` and `webz`; write the same `plural = \"…\"` in both"), "{text}");
    let (named, again) = (KindSpec::of::<other::named::Web>(), KindSpec::of::<other::named_again::Web>());
    let text = message(&[named.clone(), again.clone()]);
    assert!(text.contains("differ in short names; a kind has one set of names: write the same in both"), "{text}");
    let text = message(&[again, KindSpec::of::<other::labelled::Web>()]);
    assert!(text.contains("differ in the label `team`; the versions share one CRD"), "{text}");

    let all = [plain(), named, KindSpec::of::<other::labelled::Web>(), KindSpec::of::<other::filed::Web>()];
    let crds = definitions(&all, Descriptions::Own).unwrap();
    let crd = serde_json::to_value(&crds[0]).unwrap();
    assert_eq!(crd["spec"]["names"]["shortNames"], kctl::json!(["w"]), "a version that is not stored may name them");
    assert_eq!(crd["spec"]["names"]["categories"], kctl::json!(["all"]));
    assert_eq!(crd["metadata"]["labels"], kctl::json!({ "team": "b" }));
}
