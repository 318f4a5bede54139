# Runs for every change.
on: [push, pull_request]

jobs:
  check:
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@v4
      - run: cargo fmt --check
      - run: cargo clippy --all-targets -- -D warnings
      - run: KUBECONFIG=/dev/null cargo test
      # The release build carries no API server.
      - run: cargo check --no-default-features
      # The manifests in deploy/ match the code.
      - run: test ! -d deploy || cargo run -- generate-manifests --leader-elect --image registry.example.com/{{name}}:1 --out deploy --check
