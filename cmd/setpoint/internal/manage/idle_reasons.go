// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package manage

// noEffect begins the help of a flag that has none. The reason follows.
const noEffect = "no effect: "

// idleReason says why a flag has no effect here.
func idleReason(flag string) string { return idleReasons[flag] }

// idleReasons are the reasons, by flag.
var idleReasons = map[string]string{
	"allow-metric-labels":             "the metrics of Setpoint have labels of few values alone",
	"allow-metric-labels-manifest":    "the metrics of Setpoint have labels of few values alone",
	"cloud-config":                    "cloud providers have controller managers of their own, which read it",
	"cloud-provider":                  "cloud providers have controller managers of their own",
	"cluster-name":                    "the controllers that use it belong to cloud providers",
	"concurrent-service-syncs":        "service-lb-controller belongs to cloud providers",
	"configure-cloud-routes":          "node-route-controller belongs to cloud providers",
	"external-cloud-volume-plugin":    "kube-controller-manager has no volume plugins of cloud providers any more",
	"flex-volume-plugin-dir":          "FlexVolume drivers are not run",
	"log-flush-frequency":             "the log is written at once",
	"log-json-info-buffer-size":       "the log is written at once",
	"log-json-split-stream":           "all of the log goes to standard error",
	"log-text-info-buffer-size":       "the log is written at once",
	"log-text-split-stream":           "all of the log goes to standard error",
	"min-compatibility-version":       "no controller depends on the oldest version of the other components",
	"route-reconciliation-period":     "node-route-controller belongs to cloud providers",
	"show-hidden-metrics-for-version": "Setpoint has no hidden metrics",
	"vmodule":                         "the log has one level for all source files",
}

// unlisted are flags that kube-controller-manager takes and that its help does not show: they
// are deprecated, or of a version before 1.37.
var unlisted = map[string]bool{"allow-untagged-cloud": true, "concurrent-service-syncs": true, "node-sync-period": true}
