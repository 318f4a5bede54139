apiVersion: {{group}}/{{version}}
kind: {{kind}}
metadata:
  name: sample
  namespace: default
spec:
  message: hello
