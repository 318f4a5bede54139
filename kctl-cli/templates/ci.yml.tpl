# Runs for every change.
name: ci
on:
  push:
    branches: [main]
  pull_request:
permissions:
  contents: read
# A new commit of a pull request cancels the run of the one before it. Runs of main are never cancelled.
concurrency:
  group: ${{ github.workflow }}-${{ github.event_name == 'pull_request' && github.ref || github.run_id }}
  cancel-in-progress: ${{ github.event_name == 'pull_request' }}

jobs:
  check:
    runs-on: ubuntu-latest
    timeout-minutes: 45
    steps:
      - uses: actions/checkout@v7
      - uses: Swatinem/rust-cache@v2
        with:
          # A repository has a limit for caches: caches of pull requests would evict the cache of main.
          save-if: ${{ github.ref == 'refs/heads/main' }}
      - run: cargo fmt --check
      - run: cargo clippy --locked --all-targets -- -D warnings
      - run: KUBECONFIG=/dev/null cargo test --locked
      # The release build carries no API server.
      - run: cargo check --locked --no-default-features
      # The manifests in deploy/ match the code.
      - run: cargo run --locked -- generate-manifests --leader-elect --image registry.example.com/{{name}}:1 --out deploy --check
  chart:
    runs-on: ubuntu-latest
    timeout-minutes: 30
    steps:
      - uses: actions/checkout@v7
      - uses: Swatinem/rust-cache@v2
        with:
          save-if: ${{ github.ref == 'refs/heads/main' }}
      - name: The Helm chart is valid
        run: |
          cargo run --locked -- generate-manifests --leader-elect --image registry.example.com/{{name}}:1 --helm target/chart
          helm lint --strict target/chart
          helm template {{name}} target/chart
  image:
    runs-on: ubuntu-latest
    timeout-minutes: 60
    steps:
      - uses: actions/checkout@v7
      - uses: docker/setup-buildx-action@v4
      - uses: docker/build-push-action@v7
        with:
          context: .
          build-args: COMMIT=${{ github.sha }}
          tags: {{name}}
          # The layer with the compiled dependencies is reused until Cargo.toml or Cargo.lock changes.
          cache-from: type=gha
          cache-to: type=gha,mode=max
