apiVersion: {{group}}/v1alpha1
kind: {{kind}}
metadata:
  name: sample
  namespace: default
spec:
  message: hello
