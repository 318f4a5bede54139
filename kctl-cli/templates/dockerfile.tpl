# The image of {{name}}: docker build --build-arg COMMIT="$(git rev-parse --short HEAD)" -t registry.example.com/{{name}}:1 .
# The version of rust-toolchain.toml.
FROM rust:1.95.0-slim-trixie AS build
WORKDIR /src
# The dependencies alone: this layer is reused until Cargo.toml or Cargo.lock changes.
COPY Cargo.toml Cargo.lock ./
RUN mkdir src && echo 'fn main() {}' > src/main.rs && cargo build --release --locked --no-default-features
COPY . .
# For `--version` and the metrics, since .git is not in the build context.
ARG COMMIT
# Without default features: the embedded API server is for development and tests.
RUN touch src/main.rs
RUN cargo build --release --locked --no-default-features

# The C library of the build above and certificates, without a shell.
FROM gcr.io/distroless/cc-debian13:nonroot
COPY --from=build /src/target/release/{{name}} /usr/local/bin/{{name}}
USER 65532:65532
ENTRYPOINT ["/usr/local/bin/{{name}}"]
