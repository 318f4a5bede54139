//! `kctl add` on projects in temporary folders.

use std::{io, path::Path};

use super::{files::read, *};

/// Writes a file, and creates its folders.
fn write(path: &Path, text: &str) -> io::Result<()> {
    path.parent().map_or(Ok(()), std::fs::create_dir_all)?;
    std::fs::write(path, text)
}

struct Folder(PathBuf);

impl Folder {
    /// A project of one file.
    fn new(name: &str, main: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("kctl-add-{}-{name}", std::process::id()));
        write(&folder.join("src/main.rs"), main).unwrap();
        write(&folder.join("Cargo.toml"), "[dependencies]\nkctl = { version = \"0.1\", features = [\"v1_37\"] }\n")
            .unwrap();
        Self(folder)
    }

    fn add(&self, addition: Addition) -> Result<(), String> {
        let options = Options { addition, project: self.0.clone() };
        run(&options).map_err(|error| error.to_string())
    }

    fn text(&self, file: &str) -> String {
        read(&self.0.join(file)).unwrap()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.0));
    }
}

fn controller(name: &str) -> Addition {
    controller_with(name, None, None)
}

fn controller_with(name: &str, group: Option<String>, kind: Option<String>) -> Addition {
    Addition::Controller { name: name.into(), group, kind, api_version: FIRST_VERSION.into() }
}

const MAIN: &str = "//! Ours.
use kctl::prelude::*;

#[resource(group = \"shop.example.com\", version = \"v1alpha1\", kind = \"Shop\", namespaced)]
pub struct ShopSpec {
    /// Kept as it is written.
    pub host:   String,
}

fn app() -> App {
    // Hand-written.
    App::new(\"shop\")
        .version(\"1\")
        .controller::<reconcile_shop>()
}
";

#[test]
fn controller_is_added_and_nothing_else_changes() {
    let folder = Folder::new("controller", MAIN);
    folder.add(controller("tea-room")).unwrap();
    folder.add(controller("bar")).unwrap();
    let expected = MAIN.replace("use kctl", "mod bar;\nmod tea_room;\n\nuse kctl").replace(
            ".controller::<reconcile_shop>()",
            ".controller::<reconcile_shop>()\n        .controller::<tea_room::reconcile_tea_room>()\n        .controller::<bar::reconcile_bar>()",
        );
    let sorted = |text: &str| text.replace("mod tea_room;\nmod bar;", "mod bar;\nmod tea_room;");
    assert_eq!(sorted(&folder.text("src/main.rs")), expected);
    let module = folder.text("src/tea_room.rs");
    assert!(module.contains("kind = \"TeaRoom\"") && module.contains("group = \"shop.example.com\""), "{module}");
    assert!(!module.contains("{{"), "{module}");
    assert!(folder.text("samples/tea-room.yaml").contains("kind: TeaRoom"));
}

#[test]
fn controller_has_the_chosen_version() {
    let folder = Folder::new("api-version", MAIN);
    let bar = |api_version: &str| {
        let (name, api_version) = ("bar".into(), api_version.into());
        Addition::Controller { name, group: None, kind: None, api_version }
    };
    assert!(folder.add(bar("1")).unwrap_err().starts_with("`1` is not a version of Kubernetes' form"));
    folder.add(bar("v1beta1")).unwrap();
    let module = folder.text("src/bar.rs");
    assert!(module.contains("version = \"v1beta1\"") && module.contains("kind = \"Bar\""), "{module}");
    assert!(folder.text("samples/bar.yaml").starts_with("apiVersion: shop.example.com/v1beta1\n"));
}

#[test]
fn files_are_never_written_over() {
    let folder = Folder::new("exists", MAIN);
    write(&folder.0.join("src/tea_room.rs"), "// mine\n").unwrap();
    assert!(folder.add(controller("tea-room")).unwrap_err().contains("src/tea_room.rs already exists"));
    assert_eq!((folder.text("src/tea_room.rs"), folder.text("src/main.rs")), ("// mine\n".into(), MAIN.into()));
    assert!(folder.add(controller("Tea")).unwrap_err().contains("`Tea` is not a valid name"));
}

/// Runs `add controller NAME` and checks that it fails and changes nothing.
fn fails_without_a_change(folder: &Folder, name: &str) -> String {
    let before = folder.text("src/main.rs");
    let error = folder.add(controller(name)).unwrap_err();
    assert_eq!(folder.text("src/main.rs"), before, "{error}");
    let file = format!("src/{}.rs", name.replace('-', "_"));
    assert!(!folder.0.join(&file).exists(), "{file}: {error}");
    error
}

#[test]
fn existing_module_of_the_name_is_rejected() {
    for (name, more) in [
        ("web", "mod web;\n"),
        ("web-site", "mod web_site {}\n"),
        ("tests", "#[cfg(test)]\nmod tests {}\n"),
        ("time", "use std::{fmt, time};\n"),
        ("site", "#[controller(read_only)]\nasync fn site() {}\n"),
    ] {
        let folder = Folder::new(&format!("module-{name}"), &format!("{MAIN}{more}"));
        let error = fails_without_a_change(&folder, name);
        assert!(error.starts_with("src/main.rs has the name `"), "{error}");
    }
    let folder = Folder::new("module-folder", MAIN);
    write(&folder.0.join("src/web/mod.rs"), "").unwrap();
    let error = fails_without_a_change(&folder, "web");
    assert!(error.starts_with("src/web has the name `web` already"), "{error}");
}

#[test]
fn new_files_are_removed_if_a_write_fails() {
    let folder = Folder::new("undo", MAIN);
    // The changed source is written here first.
    std::fs::create_dir(folder.0.join("src/.main.rs.kctl")).unwrap();
    let error = fails_without_a_change(&folder, "tea-room");
    assert!(error.contains("src/main.rs: "), "{error}");
    assert!(!folder.0.join("samples").exists(), "its folder did not exist before");
    let kept = folder.0.join("samples/.gitkeep");
    write(&kept, "").unwrap();
    fails_without_a_change(&folder, "tea-room");
    assert!(kept.exists() && !folder.0.join("samples/tea-room.yaml").exists());
    std::fs::remove_dir(folder.0.join("src/.main.rs.kctl")).unwrap();
    folder.add(controller("tea-room")).unwrap();
}

#[test]
fn manifest_is_restored_if_a_write_fails() {
    let folder = Folder::new("undo-manifest", MAIN);
    let before = folder.text("Cargo.toml");
    std::fs::create_dir(folder.0.join("src/.main.rs.kctl")).unwrap();
    let error = folder.add(Addition::Webhook { kind: "Shop".into() }).unwrap_err();
    assert!(error.contains("src/main.rs: "), "{error}");
    assert_eq!((folder.text("Cargo.toml"), folder.text("src/main.rs")), (before, MAIN.into()));
    assert!(!folder.0.join("src/shop_webhook.rs").exists());
}

#[cfg(unix)]
#[test]
fn changed_file_keeps_its_link_and_permissions() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new("link", MAIN);
    let (main, linked) = (folder.0.join("src/main.rs"), folder.0.join("linked.rs"));
    std::fs::rename(&main, &linked).unwrap();
    std::fs::set_permissions(&linked, std::fs::Permissions::from_mode(0o640)).unwrap();
    std::os::unix::fs::symlink(&linked, &main).unwrap();
    folder.add(controller("tea-room")).unwrap();
    assert!(main.is_symlink() && folder.text("linked.rs").contains("mod tea_room;"));
    assert_eq!(linked.metadata().unwrap().permissions().mode() & 0o777, 0o640);
}

#[test]
fn lock_files_of_editors_are_not_modules() {
    let folder = Folder::new("lock", MAIN);
    write(&folder.0.join("src/.#main.rs"), "not Rust").unwrap();
    folder.add(controller("tea-room")).unwrap();
}

#[test]
fn project_is_unchanged_if_it_cannot_be_read() {
    let folder = Folder::new("no-manifest", MAIN);
    std::fs::remove_file(folder.0.join("Cargo.toml")).unwrap();
    assert!(fails_without_a_change(&folder, "bar").contains("Cargo.toml"));
    let folder = Folder::new("samples-file", MAIN);
    write(&folder.0.join("samples"), "").unwrap();
    assert!(fails_without_a_change(&folder, "bar").contains("samples/bar.yaml: "));
}

#[test]
fn start_of_a_file_moves_no_line() {
    let shebang = "#!/usr/bin/env -S cargo run --manifest-path\n";
    let both = format!("\u{feff}{shebang}");
    for (name, start) in [("mark", "\u{feff}"), ("shebang", shebang), ("both", both.as_str())] {
        let folder = Folder::new(name, &format!("{start}{MAIN}"));
        folder.add(controller("bar")).unwrap();
        let main = folder.text("src/main.rs");
        let expected = format!("{start}//! Ours.\nmod bar;\n\nuse kctl::prelude::*;\n");
        assert!(
            main.starts_with(&expected) && main.ends_with("()\n        .controller::<bar::reconcile_bar>()\n}\n"),
            "{main}"
        );
        folder.add(Addition::Version { version: "v1".into(), kind: Some("Shop".into()) }).unwrap();
        assert!(folder.text("src/shop_v1.rs").contains("pub host: String"));
    }
}

/// The attributes of a kind with names that its file imports or declares.
const FIELDS: &str = "use std::{collections::{BTreeMap, HashMap}, fmt::{self, Debug as Shown}};
use self::inner::Door;

mod inner {}
#[cfg(test)]
mod port {}
fn default_port() -> u16 { PORT }
const PORT: u16 = 80;
const MAX: u16 = 90;
fn unused() {}

#[resource(group = \"shop.example.com\", version = \"v1\", kind = \"Inn\", status = \"InnStatus\")]
pub struct InnSpec {
    /// unused
    pub labels: BTreeMap<String, String>,
    pub door: Door,
    #[serde(rename = \"unused\", default = \"default_port\")]
    #[validate(maximum = MAX)]
    pub port: u16,
}

pub struct InnStatus {}
";

#[test]
fn version_imports_names_of_its_fields() {
    let version = || Addition::Version { version: "v2".into(), kind: Some("Inn".into()) };
    let folder = Folder::new("names", &MAIN.replace("\nfn app", &format!("\n{FIELDS}\nfn app")));
    folder.add(version()).unwrap();
    let text = folder.text("src/inn_v2.rs");
    let head = text.split_once("#[resource").unwrap().0;
    for import in ["std::collections::BTreeMap;", "crate::inner::Door;", "crate::{InnStatus, MAX, default_port};"] {
        assert!(head.contains(&format!("use {import}\n")), "{import}\n{head}");
    }
    for other in ["HashMap", "fmt", "Shown", "unused"] {
        assert!(!head.contains(other), "{other}\n{head}");
    }
    // Other modules than the kind's can only import its public items.
    let folder = Folder::new("names-beside", &MAIN.replace("\nuse kctl", "\nmod inn;\n\nuse kctl"));
    write(&folder.0.join("src/inn.rs"), FIELDS).unwrap();
    let error = folder.add(version()).unwrap_err();
    assert!(error.starts_with("the new module needs `Door`, which src/inn.rs keeps private"), "{error}");
    write(&folder.0.join("src/inn.rs"), &FIELDS.replace("mod inner", "pub mod inner")).unwrap();
    folder.add(version()).unwrap();
    let text = folder.text("src/inn_v2.rs");
    for part in [
        "use crate::inn::InnStatus;",
        "use crate::inn::inner::Door;",
        "fn default_port() -> u16",
        "const PORT: u16",
        "const MAX: u16",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    assert!(!text.contains("fn unused"), "{text}");
}

#[test]
fn declared_kind_is_named_with_its_file() {
    let folder = Folder::new("declared", MAIN);
    let declared = folder.add(controller("shop")).unwrap_err();
    assert!(declared.contains("Shop is declared already, in src/main.rs"), "{declared}");
    folder.add(controller("tea-room")).unwrap();
    let kind = Some("TeaRoom".to_owned());
    let other = folder.add(controller_with("bar", None, kind)).unwrap_err();
    assert!(other.contains("TeaRoom is declared already, in src/tea_room.rs"), "{other}");
}

#[test]
fn kind_of_two_groups_is_ambiguous() {
    let folder = Folder::new("two-groups", MAIN);
    let group = Some("tea.example.com".to_owned());
    let declared = folder.add(controller_with("stall", group, Some("Shop".into()))).unwrap_err();
    assert!(declared.starts_with("Shop is declared already, in src/main.rs"), "{declared}");
    write(&folder.0.join("src/stall.rs"), &MAIN.replace("shop.example.com", "tea.example.com")).unwrap();
    let expected =
        "Shop is declared in two groups, `shop.example.com` in src/main.rs and `tea.example.com` in src/stall.rs";
    for addition in [Addition::Webhook { kind: "Shop".into() }, Addition::Version { version: "v1".into(), kind: None }]
    {
        let error = folder.add(addition).unwrap_err();
        assert!(error.starts_with(expected), "{error}");
    }
    assert_eq!(folder.text("src/main.rs"), MAIN);
}

#[test]
fn kind_that_differs_in_case_is_rejected() {
    let folder = Folder::new("case", MAIN);
    folder.add(controller("tea-room")).unwrap();
    let error = fails_without_a_change(&folder, "tearoom");
    let expected = "Tearoom and TeaRoom in src/tea_room.rs would both have the resource name `tearooms`";
    assert!(error.starts_with(expected), "{error}");
    let group = Some("tea.example.com".to_owned());
    folder.add(controller_with("tearoom", group, None)).unwrap();
}

#[test]
fn group_of_kubernetes_is_rejected() {
    let folder = Folder::new("protected", MAIN);
    let group = Some("tea.k8s.io".to_owned());
    let error = folder.add(controller_with("tea", group, None)).unwrap_err();
    assert!(error.starts_with("the API group `tea.k8s.io` belongs to Kubernetes"), "{error}");
    assert!(!folder.0.join("src/tea.rs").exists());
}

#[test]
fn plural_and_short_names_of_others_are_rejected() {
    let renamed =
        "kind = \"Shop\", plural = \"stores\", singular = \"outlet\", shortname = \"so\", shortname = \"till\"";
    let folder = Folder::new("plural", &MAIN.replace("kind = \"Shop\"", renamed));
    for (name, taken) in [("store", "stores"), ("outlet", "outlet"), ("till", "till")] {
        let error = fails_without_a_change(&folder, name);
        let expected = format!(" and Shop in src/main.rs would both have the resource name `{taken}`");
        assert!(error.contains(&expected), "{error}");
    }
    // `shops` and `shop` are free, since the kind has other names.
    let kind = Some("SHOP".to_owned());
    folder.add(controller_with("second", None, kind)).unwrap();
}

#[test]
fn controller_name_has_to_be_a_module() {
    let folder = Folder::new("taken", MAIN);
    for name in ["struct", "if", "self", "kctl", "tokio", "lib", "main", "core"] {
        let error = folder.add(controller(name)).unwrap_err();
        assert!(error.contains(&format!("`{name}` is a Rust keyword, or the name of a crate")), "{error}");
    }
    assert_eq!(folder.text("src/main.rs"), MAIN);
}

#[cfg(unix)]
#[test]
fn dangling_link_is_not_followed() {
    let folder = Folder::new("link", MAIN);
    let target = folder.0.join("elsewhere.yaml");
    std::fs::create_dir_all(folder.0.join("samples")).unwrap();
    std::os::unix::fs::symlink(&target, folder.0.join("samples/bar.yaml")).unwrap();
    assert!(folder.add(controller("bar")).unwrap_err().contains("samples/bar.yaml already exists"));
    assert!(!target.exists() && folder.text("src/main.rs") == MAIN);
}

#[test]
fn webhook_needs_a_kind_and_a_feature() {
    let folder = Folder::new("webhook", MAIN);
    let webhook = |kind: &str| Addition::Webhook { kind: kind.into() };
    assert!(folder.add(webhook("Bar")).unwrap_err().contains("kinds there: Shop"));
    folder.add(webhook("Shop")).unwrap();
    assert!(folder.text("Cargo.toml").contains("features = [\"v1_37\", \"webhook\"]"));
    let call = ".admission::<(shop_webhook::default_shop, shop_webhook::validate_shop)>()";
    assert!(folder.text("src/main.rs").contains(call));
    assert!(folder.text("src/shop_webhook.rs").contains("use crate::Shop;"));
    let again = folder.add(webhook("Shop")).unwrap_err();
    let expected = "src/shop_webhook.rs exists already, and the webhooks of Shop belong there: change them";
    assert!(again.starts_with(expected) && !again.contains("another name"), "{again}");
}

#[test]
fn files_of_one_kind_begin_alike() {
    let folder = Folder::new("spelling", MAIN);
    folder.add(controller("tea-room")).unwrap();
    let kind = "TeaRoom".to_owned();
    folder.add(Addition::Version { version: "v1".into(), kind: Some(kind.clone()) }).unwrap();
    // A file that kctl wrote before it separated the words.
    write(&folder.0.join("src/tearoom_webhook.rs"), "").unwrap();
    let error = folder.add(Addition::Webhook { kind: kind.clone() }).unwrap_err();
    assert!(error.starts_with("src/tearoom_webhook.rs exists already, and the webhooks of TeaRoom belong"), "{error}");
    std::fs::remove_file(folder.0.join("src/tearoom_webhook.rs")).unwrap();
    folder.add(Addition::Webhook { kind }).unwrap();
    for (file, function) in [
        ("src/tea_room.rs", "fn reconcile_tea_room("),
        ("src/tea_room_v1.rs", "fn tea_room_to_v1("),
        ("src/tea_room_webhook.rs", "fn validate_tea_room("),
    ] {
        assert!(folder.text(file).contains(function), "{file}");
    }
    let main = folder.text("src/main.rs");
    for module in ["mod tea_room;", "mod tea_room_v1;", "mod tea_room_webhook;"] {
        assert!(main.contains(module), "{module}\n{main}");
    }
}

#[test]
fn kinds_that_differ_in_case_have_separate_webhooks() {
    let folder = Folder::new("two-cases", MAIN);
    folder.add(controller("tea-room")).unwrap();
    folder.add(controller_with("tearoom", Some("tea.example.com".into()), None)).unwrap();
    for kind in ["Tearoom", "TeaRoom"] {
        folder.add(Addition::Webhook { kind: kind.into() }).unwrap();
        let again = folder.add(Addition::Webhook { kind: kind.into() }).unwrap_err();
        assert!(again.contains(&format!("exists already, and the webhooks of {kind} belong there")), "{again}");
    }
    assert!(folder.text("src/tearoom_webhook.rs").contains("use crate::tearoom::Tearoom;"));
    assert!(folder.text("src/tea_room_webhook.rs").contains("use crate::tea_room::TeaRoom;"));
}

#[test]
fn kinds_with_one_snake_case_share_webhooks() {
    let folder = Folder::new("one-snake-case", MAIN);
    folder.add(controller_with("route", None, Some("HTTPRoute".into()))).unwrap();
    folder.add(controller_with("other-route", Some("tea.example.com".into()), Some("HttpRoute".into()))).unwrap();
    folder.add(Addition::Webhook { kind: "HTTPRoute".into() }).unwrap();
    let error = folder.add(Addition::Webhook { kind: "HttpRoute".into() }).unwrap_err();
    let expected = "src/http_route_webhook.rs exists already, and the webhooks of both HttpRoute and HTTPRoute belong";
    assert!(error.starts_with(expected), "{error}");
}

#[test]
fn version_is_a_copy_with_conversions() {
    let folder = Folder::new("version", MAIN);
    let version = |version: &str| Addition::Version { version: version.into(), kind: None };
    assert!(folder.add(version("1")).unwrap_err().contains("is not a version"));
    assert!(folder.add(version("v1alpha1")).unwrap_err().contains("version v1alpha1 already, in src/main.rs"));
    folder.add(version("v1")).unwrap();
    let text = folder.text("src/shop_v1.rs");
    for part in ["version = \"v1\"", "storage = false", "pub host: String", "host: object.spec.host", "#[conversion]"] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    let main = folder.text("src/main.rs");
    assert!(main.contains(".kind::<shop_v1::Shop>().conversion::<(shop_v1::shop_to_v1, shop_v1::shop_from_v1)>()"));
}

#[test]
fn version_copies_spec_struct_of_any_name() {
    let main =
        MAIN.replace("ShopSpec", "ShopProperties").replace("namespaced)", "namespaced, deprecated = \"use v1\")");
    // A placeholder of the template, too.
    let main = main.replace("/// Kept as", "/// Such as `{{version}}.example.com`, kept as");
    let folder = Folder::new("any-name", &main);
    folder.add(Addition::Version { version: "v1".into(), kind: None }).unwrap();
    let text = folder.text("src/shop_v1.rs");
    for part in [
        "pub struct ShopProperties {",
        "spec: ShopProperties {",
        "spec: crate::ShopProperties {",
        "/// Such as `{{version}}.example.com`, kept as",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    assert!(!text.contains("ShopSpec") && !text.contains("deprecated"), "{text}");
}

#[test]
fn struct_of_another_name_is_used() {
    let main = MAIN.replace("namespaced)", "namespaced, root = \"Store\", no_spec)");
    let folder = Folder::new("root", &main);
    write(
        &folder.0.join("sample.yaml"),
        "apiVersion: shop.example.com/v1alpha1\nkind: Shop\nmetadata: { name: a }\nhost: b\n",
    )
    .unwrap();
    folder.add(Addition::Webhook { kind: "Shop".into() }).unwrap();
    folder.add(Addition::Version { version: "v1".into(), kind: None }).unwrap();
    let (webhook, version) = (folder.text("src/shop_webhook.rs"), folder.text("src/shop_v1.rs"));
    for part in ["use crate::Store;", "default_shop(object: &mut Store)", ".kind::<Store>()", "Api<Store>"] {
        assert!(webhook.contains(part), "{part}\n{webhook}");
    }
    for part in [
        "root = \"Store\"",
        "shop_to_v1(object: crate::Store) -> Store {",
        "shop_from_v1(object: Store) -> crate::Store {",
        ".kind::<crate::Store>().kind::<Store>()",
        // The fields of such a kind are not below `spec` in JSON.
        "assert_eq!(kctl::json!(stored.spec), kctl::json!(shown.spec));",
    ] {
        assert!(version.contains(part), "{part}\n{version}");
    }
    assert!(folder.text("src/main.rs").contains(".kind::<shop_v1::Store>()"));
}

#[test]
fn path_of_a_status_is_imported_or_rejected() {
    let version = || Addition::Version { version: "v2".into(), kind: Some("Inn".into()) };
    let folder = Folder::new("status-path", &MAIN.replace("\nuse kctl", "\nmod inn;\n\nuse kctl"));
    let inn = FIELDS.replace("mod inner", "pub mod inner").replace("\npub struct InnStatus {}\n", "");
    for (status, expected) in [
        (
            "\"self::inner::InnStatus\"",
            "Inn in src/inn.rs has a type whose path begins with `self`, `super` or `crate`",
        ),
        ("\"port::InnStatus\"", "the new module needs `port`, which src/inn.rs keeps private"),
    ] {
        let inn = inn.replace("#[cfg(test)]\n", "").replace("\"InnStatus\"", status);
        write(&folder.0.join("src/inn.rs"), &inn).unwrap();
        let error = folder.add(version()).unwrap_err();
        assert!(error.starts_with(expected), "{error}");
    }
    for status in ["\"inner::InnStatus\"", "inner::InnStatus"] {
        write(&folder.0.join("src/inn.rs"), &inn.replace("\"InnStatus\"", status)).unwrap();
        let _absent = std::fs::remove_file(folder.0.join("src/inn_v2.rs"));
        write(&folder.0.join("src/main.rs"), &MAIN.replace("\nuse kctl", "\nmod inn;\n\nuse kctl")).unwrap();
        folder.add(version()).unwrap();
        let text = folder.text("src/inn_v2.rs");
        assert!(text.contains("use crate::inn::inner;") && text.contains(&format!("status = {status}")), "{text}");
    }
}

/// Modules of `main.rs` name the library's items by the name of its crate.
#[test]
fn kinds_of_the_library_have_its_path() {
    let folder = Folder::new("library", "mod app;\nfn main() { kctl::App::new(\"web\"); }\n");
    write(&folder.0.join("Cargo.toml"), "[package]\nname = \"web-site\"\n[dependencies]\nkctl = \"0.1\"\n").unwrap();
    write(&folder.0.join("src/lib.rs"), &MAIN.replace("//! Ours.\n", "pub mod app;\npub mod inn;\n")).unwrap();
    let inn = FIELDS.replace("mod inner", "pub mod inner").replace("use self::inner", "use crate::inn::inner");
    write(&folder.0.join("src/inn.rs"), &inn).unwrap();
    write(&folder.0.join("src/app.rs"), &MAIN.replace("Shop", "Bar")).unwrap();
    for (kind, import) in [("Shop", "web_site::Shop"), ("Inn", "web_site::inn::Inn"), ("Bar", "crate::app::Bar")] {
        folder.add(Addition::Webhook { kind: kind.into() }).unwrap();
        let text = folder.text(&format!("src/{}_webhook.rs", kind.to_lowercase()));
        assert!(text.contains(&format!("use {import};\n")), "{text}");
    }
    folder.add(Addition::Version { version: "v2".into(), kind: Some("Inn".into()) }).unwrap();
    let text = folder.text("src/inn_v2.rs");
    assert!(text.contains("use web_site::inn::inner::Door;") && text.contains("web_site::inn::InnSpec {"), "{text}");
    let declared = folder.add(controller("shop")).unwrap_err();
    assert!(declared.contains("Shop is declared already, in src/lib.rs"), "{declared}");
    write(&folder.0.join("src/inn.rs"), &inn.replace("pub door", "pub(crate) door")).unwrap();
    let error = folder.add(Addition::Version { version: "v3".into(), kind: Some("Inn".into()) }).unwrap_err();
    assert!(error.starts_with("the new module needs `door`, which src/inn.rs keeps private"), "{error}");
}

#[test]
fn private_module_of_the_library_is_named() {
    let folder = Folder::new("private-module", "fn main() { kctl::App::new(\"web\"); }\n");
    write(
        &folder.0.join("Cargo.toml"),
        "[package]\nname = \"web\"\n[lib]\nname = \"site\"\n[dependencies]\nkctl = \"0.1\"\n",
    )
    .unwrap();
    write(&folder.0.join("src/lib.rs"), "mod shop;\npub use shop::Shop;\n").unwrap();
    write(&folder.0.join("src/shop.rs"), MAIN).unwrap();
    let additions = || {
        [
            Addition::Webhook { kind: "Shop".into() },
            Addition::Version { version: "v2".into(), kind: Some("Shop".into()) },
        ]
    };
    for addition in additions() {
        let error = folder.add(addition).unwrap_err();
        assert_eq!(error, "the new module needs `shop`, which src/lib.rs keeps private: write `pub` there");
    }
    write(&folder.0.join("src/lib.rs"), "pub mod shop;\n").unwrap();
    for addition in additions() {
        folder.add(addition).unwrap();
    }
    assert!(folder.text("src/shop_webhook.rs").contains("use site::shop::Shop;\n"));
}

#[test]
fn kind_that_shadows_a_type_is_rejected() {
    let main = MAIN.replace("\"Shop\"", "\"Api\"").replace("ShopSpec", "ApiSpec");
    let folder = Folder::new("taken-kind", &main);
    for addition in [Addition::Webhook { kind: "Api".into() }, Addition::Version { version: "v1".into(), kind: None }] {
        let error = folder.add(addition).unwrap_err();
        assert!(error.starts_with("the generated code uses the name `Api` itself"), "{error}");
    }
    assert_eq!(folder.text("src/main.rs"), main);
}

#[test]
fn private_fields_and_kinds_are_named() {
    let folder = Folder::new("private", &MAIN.replace("\nuse kctl", "\nmod inn;\n\nuse kctl"));
    let spec = "#[resource(group = \"shop.example.com\", version = \"v1\", kind = \"Inn\")]\nstruct InnSpec { pub door: u8, key: u8 }\n";
    let (version, webhook) = (
        || Addition::Version { version: "v2".into(), kind: Some("Inn".into()) },
        || Addition::Webhook { kind: "Inn".into() },
    );
    write(&folder.0.join("src/inn.rs"), spec).unwrap();
    let needs =
        |names: &str| format!("the new module needs `{names}`, which src/inn.rs keeps private: write `pub` there");
    assert_eq!(folder.add(version()).unwrap_err(), needs("InnSpec`, `key"));
    assert_eq!(folder.add(webhook()).unwrap_err(), needs("InnSpec"));
    write(&folder.0.join("src/inn.rs"), &spec.replace("struct", "pub struct")).unwrap();
    assert_eq!(folder.add(version()).unwrap_err(), needs("key"));
    folder.add(webhook()).unwrap();
    // Modules below the root can use its private items.
    let folder = Folder::new("private-root", &MAIN.replace("pub ", ""));
    folder.add(Addition::Version { version: "v2".into(), kind: None }).unwrap();
}

/// The file of version `v1` is read before `main.rs`, which declares the stored version.
#[test]
fn further_versions_and_webhooks_use_the_stored_version() {
    let bar = MAIN.replace("Shop", "Bar").replace("shop", "bar");
    let folder = Folder::new("stored", &bar);
    let version = |version: &str| Addition::Version { version: version.into(), kind: None };
    folder.add(version("v1")).unwrap();
    folder.add(version("v2")).unwrap();
    let text = folder.text("src/bar_v2.rs");
    assert!(text.contains("fn bar_to_v2(object: crate::Bar)"), "{text}");
    assert!(text.contains("between it and `v1alpha1`"), "{text}");
    folder.add(Addition::Webhook { kind: "Bar".into() }).unwrap();
    assert!(folder.text("src/bar_webhook.rs").contains("use crate::Bar;"));
}

#[test]
fn kind_without_sample_gets_no_tests() {
    let folder = Folder::new("sample", MAIN);
    folder.add(Addition::Webhook { kind: "Shop".into() }).unwrap();
    folder.add(Addition::Version { version: "v1".into(), kind: None }).unwrap();
    for file in ["src/shop_webhook.rs", "src/shop_v1.rs"] {
        let text = folder.text(file);
        assert!(!text.contains("#[cfg(test)]") && !text.contains("{{") && text.ends_with("}\n"), "{text}");
    }
    let other = "apiVersion: v1\nkind: Secret\nmetadata:\n  name: a\n";
    let elsewhere = "---\napiVersion: shop.example.com/v1alpha1\nkind: Shop\nmetadata: { name: b, namespace: c }\n";
    let shop = "---\napiVersion: shop.example.com/v1alpha1\nkind: Shop\nmetadata:\n  name: corner\nspec:\n  host: b\n";
    write(&folder.0.join("samples/all.yaml"), &format!("{other}{elsewhere}{shop}")).unwrap();
    folder.add(Addition::Version { version: "v2".into(), kind: None }).unwrap();
    let text = folder.text("src/shop_v2.rs");
    assert!(text.contains("include_str!(\"../samples/all.yaml\")") && text.contains("get(\"corner\")"), "{text}");
}

#[test]
fn sample_with_other_custom_kinds_is_skipped() {
    let folder = Folder::new("mixed-sample", MAIN);
    let object = |api_version: &str, kind: &str, name: &str| {
        format!("---\napiVersion: {api_version}\nkind: {kind}\nmetadata: {{ name: {name} }}\n")
    };
    let shop = object("shop.example.com/v1alpha1", "Shop", "mixed");
    for (file, other) in [
        ("a", object("shop.example.com/v1alpha1", "Bar", "bar")),
        ("b", object("shop.example.com/v1", "Shop", "newer")),
        // Kubernetes owns this group, but its kinds are custom resources.
        ("c", object("gateway.networking.k8s.io/v1", "Gateway", "entry")),
    ] {
        write(&folder.0.join(format!("samples/{file}.yaml")), &format!("{shop}{other}")).unwrap();
    }
    folder.add(Addition::Version { version: "v1".into(), kind: None }).unwrap();
    assert!(!folder.text("src/shop_v1.rs").contains("#[cfg(test)]"));
    let built_in = object("v1", "Secret", "key") + &object("networking.k8s.io/v1", "Ingress", "entry");
    let shop = object("shop.example.com/v1alpha1", "Shop", "alone");
    write(&folder.0.join("samples/d.yaml"), &format!("{built_in}{shop}")).unwrap();
    folder.add(Addition::Webhook { kind: "Shop".into() }).unwrap();
    let text = folder.text("src/shop_webhook.rs");
    assert!(text.contains("include_str!(\"../samples/d.yaml\")") && text.contains("get(\"alone\")"), "{text}");
}

#[test]
fn lines_are_shown_where_no_place_is_found() {
    // The file creates two apps, so the place for the call is ambiguous.
    let folder = Folder::new("by-hand", "fn a() { App::new(\"a\"); }\nfn b() { App::new(\"b\"); }\n");
    let version = Addition::Version { version: "v1".into(), kind: None };
    assert!(folder.add(version).unwrap_err().starts_with("no `#[resource]` was found in src/"));
    let error = folder.add(controller("bar")).unwrap_err();
    assert!(error.contains("mod bar;") && error.contains(".controller::<bar::reconcile_bar>()"), "{error}");
    assert!(folder.0.join("src/bar.rs").exists());
    let none = Folder::new("none", "fn main() {}\n");
    assert!(none.add(controller("bar")).unwrap_err().contains("has no src/main.rs or src/lib.rs"));
    let broken = Folder::new("broken", &format!("{MAIN}\nfn half("));
    assert!(broken.add(controller("bar")).unwrap_err().contains("src/main.rs: cannot be parsed: "));
}
