//! A CRD and its Rust type agree: the type can read each object that the CRD allows, and the CRD allows each object
//! that the type writes.
//! Each case runs on the embedded server. With `REAL_SERVER` it also runs on that server, which must accept each CRD
//! without a warning.

#![expect(unreachable_pub, reason = "kinds are public where users declare them")]

use std::{
    collections::BTreeMap,
    fmt::Debug,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    num::{NonZeroI8, NonZeroI64, NonZeroU8, NonZeroU32, NonZeroU64, NonZeroUsize},
    time::Duration,
};

use http::StatusCode;
use kctl::{
    Json, json,
    k8s::apimachinery::pkg::util::intstr::IntOrString,
    kube::{Client, CustomResourceExt, Error},
    manifest::{Descriptions, KindSpec, definitions},
    prelude::*,
};
use kctl_apiserver::ApiServer;
use serde::{Serialize, de::DeserializeOwned};

/// Fields of each integer type, and of each string type for which schemars has a format.
mod readable {
    use super::*;

    #[resource(group = "values.example.com", version = "v1", kind = "Readable", namespaced)]
    #[derive(Default)]
    pub struct ReadableSpec {
        pub i8: Option<i8>,
        pub i16: Option<i16>,
        pub i32: Option<i32>,
        pub i64: Option<i64>,
        pub isize: Option<isize>,
        pub u8: Option<u8>,
        pub u16: Option<u16>,
        pub u32: Option<u32>,
        pub u64: Option<u64>,
        pub usize: Option<usize>,
        pub nonzero_i8: Option<NonZeroI8>,
        pub nonzero_i64: Option<NonZeroI64>,
        pub nonzero_u8: Option<NonZeroU8>,
        pub nonzero_u32: Option<NonZeroU32>,
        pub nonzero_u64: Option<NonZeroU64>,
        pub nonzero_usize: Option<NonZeroUsize>,
        #[kctl(maximum = 70000)]
        pub clamped: Option<u16>,
        #[kctl(minimum = 5)]
        pub narrowed: Option<u32>,
        #[kctl(maximum = 9223372036854775807)]
        pub unbounded: Option<i64>,
        pub f32: Option<f32>,
        pub f64: Option<f64>,
        pub char: Option<char>,
        pub list: Option<Vec<u32>>,
        pub map: Option<BTreeMap<String, u8>>,
        pub port: Option<IntOrString>,
        pub v4: Option<Ipv4Addr>,
        pub v6: Option<Ipv6Addr>,
        pub ip: Option<IpAddr>,
        #[kctl(pattern = "^10\\.")]
        pub private: Option<IpAddr>,
        pub wait: Option<Duration>,
        pub bytes: Option<[u8; 2]>,
    }
}

/// Enums and fields with allowed values, which may be null.
mod choice {
    use super::*;

    #[resource(group = "values.example.com", version = "v1", kind = "Choice", namespaced, status = "ChoiceStatus")]
    #[derive(Default)]
    pub struct ChoiceSpec {
        pub mode: Option<Mode>,
        pub documented: Option<Documented>,
        #[serde(default)]
        pub defaulted: Option<Mode>,
        #[kctl(default = "Fast")]
        pub filled: Option<Mode>,
        #[kctl(allowed("a", "b"))]
        pub word: Option<String>,
        #[kctl(allowed(1, 2))]
        pub number: Option<i32>,
        #[kctl(nullable = false)]
        pub strict: Option<String>,
        #[kctl(nullable = true)]
        pub explicit: Option<Mode>,
        pub text: Option<String>,
        #[serde(default)]
        pub modes: Vec<Option<Mode>>,
        #[serde(default)]
        #[kctl(items(allowed("a", "b")))]
        pub words: Vec<Option<String>>,
        #[serde(default)]
        pub by_name: BTreeMap<String, Option<Documented>>,
        #[kctl(values(maximum = 9))]
        pub by_choice: Option<BTreeMap<Documented, u8>>,
        pub part: Option<Part>,
        pub plain: Option<Plain>,
        pub variant: Option<Variant>,
    }

    #[schema]
    pub struct ChoiceStatus {
        pub mode: Option<Mode>,
    }

    #[schema]
    pub enum Mode {
        Fast,
        Slow,
    }

    #[schema]
    #[derive(PartialEq, Eq, PartialOrd, Ord)]
    pub enum Documented {
        /// By day.
        Light,
        /// By night.
        Dark,
    }

    #[schema]
    pub struct Part {
        pub mode: Option<Mode>,
    }

    #[schema]
    pub enum Variant {
        A { mode: Option<Mode> },
        B {},
    }

    /// A part that the attributes of kctl do not know: it writes `null`.
    #[derive(
        Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize, kctl_runtime::__private_0_1::schemars::JsonSchema,
    )]
    #[schemars(crate = "kctl_runtime::__private_0_1::schemars")]
    pub struct Plain {
        pub mode: Option<Mode>,
    }
}

/// Enums whose variants share fields.
mod tagged {
    use super::*;

    #[resource(group = "values.example.com", version = "v1", kind = "Tagged", namespaced)]
    #[derive(Default)]
    pub struct TaggedSpec {
        pub storage: Option<Storage>,
        #[serde(default)]
        pub more: Vec<Storage>,
        #[serde(default)]
        pub named: BTreeMap<String, Storage>,
        pub adjacent: Option<Adjacent>,
        pub whole: Option<Whole>,
        pub untagged: Option<Untagged>,
        pub nested: Option<Nested>,
        pub outer: Option<Outer>,
    }

    /// Storage of the data.
    #[schema]
    #[serde(tag = "type")]
    pub enum Storage {
        /// In a bucket.
        S3(S3),
        /// On this machine.
        Disk(Disk),
        None,
    }

    #[schema]
    pub struct S3 {
        pub bucket: String,
        #[kctl(minimum = 1, maximum = 5)]
        pub copies: Option<u8>,
        pub size: i32,
    }

    #[schema]
    pub struct Disk {
        pub path: String,
        pub copies: u16,
        pub size: i32,
    }

    #[schema]
    #[serde(tag = "kind", content = "spec")]
    pub enum Adjacent {
        S3(S3),
        Disk(Disk),
        Nothing,
    }

    #[schema]
    pub struct Whole {
        pub name: String,
        #[serde(flatten)]
        pub storage: Flat,
    }

    #[schema]
    #[serde(untagged)]
    pub enum Flat {
        Few { level: u8, few: String },
        Many { level: u32 },
    }

    #[schema]
    #[serde(untagged)]
    pub enum Untagged {
        Short {
            #[kctl(max_length = 3)]
            name: String,
            short: bool,
        },
        Long {
            name: String,
        },
    }

    #[schema]
    #[serde(tag = "in")]
    pub enum Nested {
        One { at: Storage },
        Two { at: Storage, count: i32 },
    }

    #[schema]
    #[serde(tag = "outer")]
    pub enum Outer {
        A(Storage),
        B { path: String },
    }
}

/// A spec, and whether a server must accept it. A server must reject a spec that the type can't read.
struct Case {
    spec: Json,
    fits: Fits,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Fits {
    Yes,
    No,
}

fn case(fits: Fits) -> impl Fn(&str, Json) -> Case {
    move |field, value| Case { spec: json!({ field: value }), fits }
}

/// Returns the servers under test, with `true` for a real one.
async fn servers() -> Vec<(Client, bool)> {
    let mut servers = vec![(Client::new(ApiServer::new().service(), "default"), false)];
    servers.extend(kctl_tests::real_client().await.map(|client| (client, true)));
    servers
}

/// Why a server has not created an object.
struct Rejection {
    code: StatusCode,
    message: String,
}

async fn post(client: &Client, uri: &str, body: &Json) -> Result<(Json, Vec<String>), Rejection> {
    let request = http::Request::post(uri).header("content-type", "application/json");
    let request = request.body(kctl::kube::client::Body::from(serde_json::to_vec(body).unwrap())).unwrap();
    let response = client.send(request).await.unwrap();
    let warnings = response.headers().get_all("warning").iter().map(|text| text.to_str().unwrap().to_owned()).collect();
    let code = response.status();
    let body = response.into_body().collect_bytes().await.unwrap();
    if code.is_success() {
        return Ok((serde_json::from_slice(&body).unwrap(), warnings));
    }
    // The body of a 404 for an unknown path is plain text.
    let status: Json = serde_json::from_slice(&body).unwrap_or_default();
    let message = status["message"].as_str().map_or_else(|| String::from_utf8_lossy(&body).into_owned(), Into::into);
    Err(Rejection { code, message })
}

/// Creates an object of a custom kind. A server that has just installed the CRD may respond with 404 or 429 although it
/// has listed the kind before, so these requests are repeated for up to a minute.
async fn create(client: &Client, uri: &str, object: &Json) -> Result<Json, String> {
    for _ in 0..1200 {
        match post(client, uri, object).await {
            Ok((stored, _)) => return Ok(stored),
            Err(Rejection { code: StatusCode::NOT_FOUND | StatusCode::TOO_MANY_REQUESTS, .. }) => {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            Err(Rejection { message, .. }) => return Err(message),
        }
    }
    panic!("{uri}: the kind is not served after a minute")
}

/// Installs a CRD and waits until its kind is served. The server must not return a warning.
async fn install(client: &Client, crd: &Json) {
    let name = crd["metadata"]["name"].as_str().unwrap();
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let objects =
        format!("/apis/values.example.com/v1/namespaces/default/{}", crd["spec"]["names"]["plural"].as_str().unwrap());
    let delete = http::Request::delete(format!("{definitions}/{name}")).body(Vec::new()).unwrap();
    let was_there = client.request::<Json>(delete).await.is_ok();
    let warnings = loop {
        match post(client, definitions, crd).await {
            Ok((_, warnings)) => break warnings,
            Err(rejection) if was_there && rejection.code == StatusCode::CONFLICT => {}
            Err(Rejection { code, message }) => panic!("{name}: {code}: {message}"),
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    assert!(warnings.is_empty(), "{name}: {warnings:?}");
    loop {
        let list = http::Request::get(&objects).body(Vec::new()).unwrap();
        match client.request::<Json>(list).await {
            Ok(_) => break,
            Err(Error::Api(status)) if status.code == 404 || status.code == 429 => {}
            Err(error) => panic!("{name}: {error}"),
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

fn definition<K: CustomResourceExt + kctl_runtime::__private_0_1::schemars::JsonSchema>() -> Json {
    json!(definitions(&[KindSpec::of::<K>()], Descriptions::Own).unwrap_or_else(|error| panic!("{error}"))[0])
}

/// Several tests use the same kind, and a server has one CRD per kind at a time.
static ONE_AT_A_TIME: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

/// Creates objects of a kind on all servers. The type must be able to read each accepted object.
async fn check<K>(cases: &[Case])
where
    K: CustomResourceExt + kctl_runtime::__private_0_1::schemars::JsonSchema + DeserializeOwned + Serialize + Debug,
{
    let crd = definition::<K>();
    let (kind, plural) = (crd["spec"]["names"]["kind"].clone(), crd["spec"]["names"]["plural"].as_str().unwrap());
    let _alone = ONE_AT_A_TIME.lock().await;
    let mut wrong = Vec::new();
    for (client, is_real) in servers().await {
        install(&client, &crd).await;
        for Case { spec, fits } in cases {
            let object = json!({
                "apiVersion": "values.example.com/v1", "kind": kind, "metadata": { "generateName": "a-" }, "spec": spec,
            });
            let uri = format!("/apis/values.example.com/v1/namespaces/default/{plural}?dryRun=All");
            let server = if is_real { "real" } else { "embedded" };
            match create(&client, &uri, &object).await {
                Ok(stored) => {
                    if let Err(error) = serde_json::from_value::<K>(stored) {
                        wrong.push(format!("{server}: {spec} is taken and can't be read: {error}"));
                    }
                    if *fits != Fits::Yes {
                        wrong.push(format!("{server}: {spec} is taken"));
                    }
                }
                Err(message) if *fits == Fits::Yes => wrong.push(format!("{server}: {spec} is rejected: {message}")),
                Err(_) => {}
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test]
async fn accepted_numbers_fit_their_rust_type() {
    let (good, bad) = (case(Fits::Yes), case(Fits::No));
    let mut cases = Vec::new();
    for (field, low, high) in [
        ("i8", i128::from(i8::MIN), i128::from(i8::MAX)),
        ("i16", i16::MIN.into(), i16::MAX.into()),
        ("i32", i32::MIN.into(), i32::MAX.into()),
        ("i64", i64::MIN.into(), i64::MAX.into()),
        ("isize", i64::MIN.into(), i64::MAX.into()),
        ("u8", 0, u8::MAX.into()),
        ("u16", 0, u16::MAX.into()),
        ("u32", 0, u32::MAX.into()),
        ("u64", 0, i64::MAX.into()),
        ("usize", 0, i64::MAX.into()),
        ("nonzeroI8", i8::MIN.into(), i8::MAX.into()),
        ("nonzeroI64", i64::MIN.into(), i64::MAX.into()),
        ("nonzeroU8", 1, u8::MAX.into()),
        ("nonzeroU32", 1, u32::MAX.into()),
        ("nonzeroU64", 1, i64::MAX.into()),
        ("nonzeroUsize", 1, i64::MAX.into()),
        ("clamped", 0, u16::MAX.into()),
        ("narrowed", 5, u32::MAX.into()),
        ("unbounded", i64::MIN.into(), i64::MAX.into()),
        ("port", i32::MIN.into(), i32::MAX.into()),
    ] {
        let number = |number: i128| serde_json::from_str::<Json>(&number.to_string()).unwrap();
        cases.extend([low, high].map(|value| good(field, number(value))));
        cases.extend([low - 1, high + 1].map(|value| bad(field, number(value))));
        cases.push(bad(field, json!(1e300)));
        cases.push(if field == "port" { good(field, json!("http")) } else { bad(field, json!("7")) });
    }
    for field in ["nonzeroI8", "nonzeroI64"] {
        cases.push(bad(field, json!(0)));
    }
    cases.extend([
        good("list", json!([0, u32::MAX])),
        bad("list", json!([4_294_967_296_u64])),
        good("map", json!({ "a": 255 })),
        bad("map", json!({ "a": 256 })),
        good("f32", json!(1.5)),
        bad("f32", json!(1e39)),
        good("f64", json!(1e300)),
        good("char", json!("ß")),
        bad("char", json!("")),
        bad("char", json!("ab")),
        good("wait", json!({ "secs": 1, "nanos": 0 })),
        bad("wait", json!({ "secs": -1, "nanos": 0 })),
        bad("wait", json!({ "secs": 1, "nanos": 4_294_967_296_u64 })),
        good("bytes", json!([0, 255])),
        bad("bytes", json!([0])),
        bad("bytes", json!([0, 256])),
    ]);
    check::<readable::Readable>(&cases).await;
}

#[tokio::test]
async fn schema_accepts_addresses_that_rust_can_parse() {
    let mut cases = Vec::new();
    for text in [
        "10.0.0.1",
        "010.0.0.1",
        "10.0.0",
        "256.0.0.1",
        "::1",
        "::",
        "1:2:3:4:5:6:7:8",
        "::ffff:1.2.3.4",
        "::ffff:010.2.3.4",
        "::00001",
        "fe80::1%eth0",
        "10.0.0.1:80",
        "localhost",
        "",
    ] {
        let ip = text.parse::<IpAddr>().is_ok();
        for (field, reads) in [
            ("v4", text.parse::<Ipv4Addr>().is_ok()),
            ("v6", text.parse::<Ipv6Addr>().is_ok()),
            ("ip", ip),
            ("private", ip && text.starts_with("10.")),
        ] {
            cases.push(case(if reads { Fits::Yes } else { Fits::No })(field, json!(text)));
        }
    }
    check::<readable::Readable>(&cases).await;
}

#[tokio::test]
async fn null_among_enum_values_is_omitted_or_accepted() {
    use choice::{ChoiceSpec, Documented, Mode, Part, Plain, Variant};
    let none = ChoiceSpec::default();
    let parts = ChoiceSpec {
        modes: vec![Some(Mode::Fast), None],
        words: vec![None, Some("a".into())],
        by_name: BTreeMap::from([("a".into(), None), ("b".into(), Some(Documented::Dark))]),
        part: Some(Part { mode: None }),
        plain: Some(Plain { mode: None }),
        variant: Some(Variant::A { mode: None }),
        ..none.clone()
    };
    let some = ChoiceSpec {
        mode: Some(Mode::Slow),
        documented: Some(Documented::Light),
        word: Some("b".into()),
        number: Some(2),
        explicit: Some(Mode::Fast),
        variant: Some(Variant::B {}),
        ..none.clone()
    };
    let mut cases: Vec<Case> =
        [none, parts, some].iter().map(|spec| Case { spec: json!(spec), fits: Fits::Yes }).collect();
    let bad = case(Fits::No);
    cases.extend([
        bad("mode", json!("Other")),
        bad("documented", json!("Fast")),
        bad("word", json!("c")),
        bad("number", json!(3)),
        bad("explicit", json!("Other")),
        bad("modes", json!(["Other"])),
        bad("words", json!(["c"])),
        bad("byName", json!({ "a": "Other" })),
        bad("plain", json!({ "mode": "Other" })),
        bad("byChoice", json!({ "Light": 10 })),
    ]);
    // Other keys are dropped, because the type could not read them.
    let good = case(Fits::Yes);
    cases.extend([good("byChoice", json!({ "Light": 1 })), good("byChoice", json!({ "Light": 1, "Other": 2 }))]);
    check::<choice::Choice>(&cases).await;
}

#[test]
fn none_is_omitted_unless_null_is_allowed() {
    let written = json!(choice::ChoiceSpec::default());
    // A field with a default is written as null, because the default would replace a missing field. `nullable = true`
    // allows null.
    let expected = json!({ "filled": null, "explicit": null, "modes": [], "words": [], "byName": {} });
    assert_eq!(written, expected);
    assert_eq!(json!(choice::ChoiceStatus { mode: None }), json!({}));
}

#[test]
fn no_definition_has_null_among_allowed_values() {
    fn walk(schema: &Json) {
        if let Some(allowed) = schema["enum"].as_array() {
            assert!(!allowed.contains(&Json::Null) && schema["nullable"] != true, "{schema}");
        }
        match schema {
            Json::Object(fields) => fields.values().for_each(walk),
            Json::Array(all) => all.iter().for_each(walk),
            _ => {}
        }
    }
    let crd = definition::<choice::Choice>();
    walk(&crd);
    walk(&json!(choice::Choice::crd()));
    let spec = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"];
    assert_eq!(spec["mode"], json!({ "type": "string", "enum": ["Fast", "Slow"] }));
    let nullable = json!({ "type": "string", "nullable": true, "allOf": [{ "enum": ["Fast", "Slow"] }] });
    assert_eq!(spec["modes"]["items"], nullable);
}

#[tokio::test]
async fn variants_with_shared_fields_are_accepted_unless_mixed() {
    use tagged::{Adjacent, Disk, Flat, Nested, Outer, S3, Storage, TaggedSpec, Untagged, Whole};
    let s3 = || S3 { bucket: "b".into(), copies: Some(5), size: 1 };
    let disk = || Disk { path: "/".into(), copies: 300, size: 1 };
    let storages = || vec![Storage::S3(s3()), Storage::Disk(disk()), Storage::None];
    let written = vec![
        TaggedSpec { storage: Some(Storage::S3(S3 { copies: None, ..s3() })), ..TaggedSpec::default() },
        TaggedSpec { more: storages(), ..TaggedSpec::default() },
        TaggedSpec {
            named: storages().into_iter().enumerate().map(|(n, one)| (n.to_string(), one)).collect(),
            ..TaggedSpec::default()
        },
        TaggedSpec { adjacent: Some(Adjacent::S3(s3())), ..TaggedSpec::default() },
        TaggedSpec { adjacent: Some(Adjacent::Disk(disk())), ..TaggedSpec::default() },
        TaggedSpec { adjacent: Some(Adjacent::Nothing), ..TaggedSpec::default() },
        TaggedSpec {
            whole: Some(Whole { name: "a".into(), storage: Flat::Few { level: 255, few: "x".into() } }),
            ..TaggedSpec::default()
        },
        TaggedSpec {
            whole: Some(Whole { name: "a".into(), storage: Flat::Many { level: 70_000 } }),
            ..TaggedSpec::default()
        },
        TaggedSpec { untagged: Some(Untagged::Short { name: "abc".into(), short: true }), ..TaggedSpec::default() },
        TaggedSpec { untagged: Some(Untagged::Long { name: "abcd".into() }), ..TaggedSpec::default() },
        TaggedSpec { nested: Some(Nested::One { at: Storage::S3(s3()) }), ..TaggedSpec::default() },
        TaggedSpec { nested: Some(Nested::Two { at: Storage::None, count: 1 }), ..TaggedSpec::default() },
        TaggedSpec { outer: Some(Outer::A(Storage::Disk(disk()))), ..TaggedSpec::default() },
        TaggedSpec { outer: Some(Outer::B { path: "/".into() }), ..TaggedSpec::default() },
    ];
    let mut cases: Vec<Case> = written.iter().map(|spec| Case { spec: json!(spec), fits: Fits::Yes }).collect();
    let bad = case(Fits::No);
    let s3 = json!({ "bucket": "b", "size": 1 });
    cases.extend([
        bad("storage", json!({ "bucket": "b", "size": 1 })),
        bad("storage", json!({ "type": "S3", "path": "/", "size": 1 })),
        bad("storage", json!({ "type": "Disk", "bucket": "b", "size": 1 })),
        bad("storage", json!({ "type": "Disk", "path": "/", "size": 1 })),
        bad("storage", json!({ "type": "S3", "bucket": "b", "size": 1, "copies": 6 })),
        bad("storage", json!({ "type": "Disk", "path": "/", "size": 1, "copies": 65_536 })),
        bad("storage", json!({ "type": "Other" })),
        bad("storage", json!("S3")),
        bad("more", json!([{ "type": "None" }, { "type": "S3" }])),
        bad("named", json!({ "a": { "type": "Disk" } })),
        bad("adjacent", json!({ "kind": "Disk", "spec": s3 })),
        bad("adjacent", json!({ "kind": "S3" })),
        bad("whole", json!({ "name": "a" })),
        bad("whole", json!({ "name": "a", "level": 4_294_967_296_u64 })),
        bad("untagged", json!({ "short": true })),
        bad("nested", json!({ "in": "Two", "at": { "type": "None" } })),
        bad("nested", json!({ "in": "One", "at": { "type": "S3", "path": "/" } })),
        bad("outer", json!({ "outer": "A", "path": "/" })),
        bad("outer", json!({ "outer": "B", "type": "None" })),
    ]);
    check::<tagged::Tagged>(&cases).await;
}
