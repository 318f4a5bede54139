//! Karmada's own webhook client against the example: every operation is accepted, and every error arrives.
//!
//! `KARMADA_SOURCE` names a checkout of Karmada with its `vendor` folder; without it there is nothing to ask. Go builds our program
//! (`tests/interop/karmada/main.go`) in that checkout by an overlay, so that nothing is written there.

use std::{
    env, fs,
    path::Path,
    process::{Child, Command, Stdio},
    time::Duration,
};

/// The example, which ends with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _gone = self.0.kill();
        let _ended = self.0.wait();
    }
}

#[tokio::test]
async fn karmadas_own_client_accepts_every_operation() {
    let Some(source) = env::var_os("KARMADA_SOURCE") else { return };
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/interop/karmada/main.go");
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let (overlay, client, config) =
        (folder.join("overlay.json"), folder.join("karmada-client"), folder.join("webhook.yaml"));
    let place = Path::new(&source).join("cmd/kctl-interop/main.go");
    fs::write(&overlay, kctl::json!({ "Replace": { (place.to_str().unwrap()): program } }).to_string()).unwrap();
    let built = Command::new("go")
        .current_dir(&source)
        .args(["build", "-mod=vendor", "-overlay"])
        .arg(&overlay)
        .arg("-o")
        .arg(&client)
        .arg("./cmd/kctl-interop")
        .output()
        .unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));

    drop(fs::remove_file(&config));
    let example = Command::new(env!("CARGO_BIN_EXE_workload-interpreter"))
        .args(["run", "--write-webhook-config"])
        .arg(&config)
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let _example = Running(example);
    tokio::time::timeout(Duration::from_secs(60), async {
        while !fs::read_to_string(&config).is_ok_and(|text| text.ends_with('\n')) {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    })
    .await
    .expect("the example writes its configuration");
    let asked = Command::new(client).arg(config).output().unwrap();
    let said = String::from_utf8_lossy(&asked.stdout);
    assert!(asked.status.success(), "{said}");
    assert_eq!(said.matches(": accepted: ").count(), 9, "{said}");
}
