{{- define "edgewise.name" -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- end }}

{{- define "edgewise.selector" -}}
app.kubernetes.io/name: edgewise
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .part }}
{{- end }}

{{- define "edgewise.labels" -}}
{{ include "edgewise.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ .root.Chart.Name }}-{{ .root.Chart.Version }}
{{- end }}

{{/* What every pod has: no root, no privileges, and a fast move away from a node that is gone. */}}
{{- define "edgewise.podSecurity" -}}
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  runAsGroup: 10001
  fsGroup: 10001
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile: {type: RuntimeDefault}
tolerations:
  - {key: node.kubernetes.io/not-ready, operator: Exists, effect: NoExecute, tolerationSeconds: 10}
  - {key: node.kubernetes.io/unreachable, operator: Exists, effect: NoExecute, tolerationSeconds: 10}
{{- end }}

{{- define "edgewise.containerSecurity" -}}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
{{- end }}

{{- define "edgewise.accessArgs" -}}
- --host=0.0.0.0
- --jwt-key=/etc/edgewise/jwt/jwt.key
{{- if .Values.tls.existingSecret }}
- --tls-cert=/etc/edgewise/tls/tls.crt
- --tls-key=/etc/edgewise/tls/tls.key
{{- end }}
{{- end }}

{{- define "edgewise.mounts" -}}
- {name: app, mountPath: /etc/edgewise/app, readOnly: true}
- {name: jwt, mountPath: /etc/edgewise/jwt, readOnly: true}
{{- if .Values.tls.existingSecret }}
- {name: tls, mountPath: /etc/edgewise/tls, readOnly: true}
{{- end }}
- {name: tmp, mountPath: /tmp}
{{- end }}

{{- define "edgewise.volumes" -}}
- name: app
  configMap: {name: {{ include "edgewise.name" . }}-app}
- name: jwt
  secret: {secretName: {{ .Values.auth.existingSecret }}}
{{- if .Values.tls.existingSecret }}
- name: tls
  secret: {secretName: {{ .Values.tls.existingSecret }}}
{{- end }}
- name: tmp
  emptyDir: {}
{{- end }}

{{/* /livez is false only for a process that should be started again, /readyz for one that should get no traffic. */}}
{{- define "edgewise.probes" -}}
{{- $scheme := ternary "HTTPS" "HTTP" (ne .root.Values.tls.existingSecret "") -}}
startupProbe:
  httpGet: {path: /livez, port: {{ .port }}, scheme: {{ $scheme }}}
  periodSeconds: 5
  failureThreshold: 60
livenessProbe:
  httpGet: {path: /livez, port: {{ .port }}, scheme: {{ $scheme }}}
  periodSeconds: 10
  failureThreshold: 6
readinessProbe:
  httpGet: {path: /readyz, port: {{ .port }}, scheme: {{ $scheme }}}
  periodSeconds: 5
{{- end }}
