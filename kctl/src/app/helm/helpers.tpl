{{- /* The name of the program in labels. */}}
{{- define "KCTL-CHART.name" -}}
{{- default .Chart.Name .Values.nameOverride | toString | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- /* The name of the objects. With the longest suffix of a Service, `-metrics`, it is still a DNS label. */}}
{{- define "KCTL-CHART.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | toString | trunc 55 | trimSuffix "-" }}
{{- else }}
{{- $name := default .Chart.Name .Values.nameOverride | toString }}
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
app.kubernetes.io/version: {{ . | quote }}
{{- end }}
app.kubernetes.io/managed-by: {{ .Release.Service | quote }}
{{- end }}

{{- define "KCTL-CHART.serviceAccountName" -}}
{{- if .Values.serviceAccount.create }}
{{- default (include "KCTL-CHART.fullname" .) .Values.serviceAccount.name }}
{{- else }}
{{- required "serviceAccount.name is needed when serviceAccount.create is false" .Values.serviceAccount.name }}
{{- end }}
{{- end }}

{{- define "KCTL-CHART.image" -}}
{{- if .Values.image.digest }}
{{- printf "%s@%s" (toString .Values.image.repository) (toString .Values.image.digest) }}
{{- else }}
{{- printf "%s:%s" (toString .Values.image.repository) (.Values.image.tag | default .Chart.AppVersion | default "latest" | toString) }}
{{- end }}
{{- end }}

{{- /* Not empty if the replicas elect a leader. Shards take its place. */}}
{{- define "KCTL-CHART.elects" -}}
{{- if and .Values.leaderElection.enabled (eq (int .Values.shards) 0) }}true{{ end }}
{{- end }}

{{- /* The uid of the dashboard: at most 40 characters, and another one for each release. */}}
{{- define "KCTL-CHART.dashboardUid" -}}
{{- $uid := printf "kctl-%s" (include "KCTL-CHART.fullname" .) }}
{{- if gt (len $uid) 40 }}
{{- printf "%s-%s" (trunc 31 $uid) (trunc 8 (sha256sum $uid)) }}
{{- else }}
{{- $uid }}
{{- end }}
{{- end }}
