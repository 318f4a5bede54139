{{- /* A value as a string. Numbers in files of values are floats, which are otherwise printed as `2.0241105e+07`. */}}
{{- define "KCTL-CHART.string" -}}
{{- if kindIs "float64" . }}{{ toJson . }}{{ else }}{{ . }}{{ end }}
{{- end }}

{{- /* The name of the program in labels. */}}
{{- define "KCTL-CHART.name" -}}
{{- include "KCTL-CHART.string" (default .Chart.Name .Values.nameOverride) | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- /* The name of the objects. With the longest suffix of a Service, `-metrics`, it is still a DNS label. */}}
{{- define "KCTL-CHART.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- include "KCTL-CHART.string" .Values.fullnameOverride | trunc 55 | trimSuffix "-" }}
{{- else }}
{{- $name := include "KCTL-CHART.string" (default .Chart.Name .Values.nameOverride) }}
{{- if contains $name .Release.Name }}
{{- .Release.Name | trunc 55 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name $name | trunc 55 | trimSuffix "-" }}
{{- end }}
{{- end }}
{{- end }}

{{- define "KCTL-CHART.selectorLabels" -}}
app.kubernetes.io/name: {{ include "KCTL-CHART.name" . | quote }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end }}

{{- define "KCTL-CHART.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" | quote }}
{{ include "KCTL-CHART.selectorLabels" . }}
{{- with .Chart.AppVersion }}
app.kubernetes.io/version: {{ . | replace "+" "_" | trunc 63 | trimSuffix "-" | quote }}
{{- end }}
app.kubernetes.io/managed-by: {{ .Release.Service | quote }}
{{- end }}

{{- define "KCTL-CHART.serviceAccountName" -}}
{{- if .Values.serviceAccount.create }}
{{- include "KCTL-CHART.string" (default (include "KCTL-CHART.fullname" .) .Values.serviceAccount.name) }}
{{- else }}
{{- include "KCTL-CHART.string" (required "serviceAccount.name is needed when serviceAccount.create is false" .Values.serviceAccount.name) }}
{{- end }}
{{- end }}

{{- /* Neither a label nor a tag may have the `+` of an appVersion. */}}
{{- define "KCTL-CHART.image" -}}
{{- $repository := include "KCTL-CHART.string" .Values.image.repository }}
{{- if .Values.image.digest }}
{{- printf "%s@%s" $repository (include "KCTL-CHART.string" .Values.image.digest) }}
{{- else }}
{{- printf "%s:%s" $repository (include "KCTL-CHART.string" (.Values.image.tag | default (replace "+" "_" .Chart.AppVersion) | default "latest")) }}
{{- end }}
{{- end }}

{{- /* Not empty if the replicas elect a leader. Shards take its place. */}}
{{- define "KCTL-CHART.elects" -}}
{{- if and .Values.leaderElection.enabled (eq (int .Values.shards) 0) }}true{{ end }}
{{- end }}

{{- /* The uid of the dashboard, which differs between releases. It has at most 40 characters. */}}
{{- define "KCTL-CHART.dashboardUid" -}}
{{- $uid := printf "kctl-%s" (include "KCTL-CHART.fullname" .) }}
{{- if gt (len $uid) 40 }}
{{- printf "%s-%s" (trunc 31 $uid) (trunc 8 (sha256sum $uid)) }}
{{- else }}
{{- $uid }}
{{- end }}
{{- end }}
