# Pull requests of Dependabot, each week, for new versions of what the project is built with.
version: 2
updates:
  - package-ecosystem: cargo
    directory: /
    schedule:
      interval: weekly
    groups:
      minor:
        update-types: [minor, patch]
  # The images in the Dockerfile. With a new version of Rust, change rust-toolchain.toml too.
  - package-ecosystem: docker
    directory: /
    schedule:
      interval: weekly
  - package-ecosystem: github-actions
    directory: /
    schedule:
      interval: weekly
    groups:
      all:
        patterns: ["*"]
