// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package nodelifecycle

import corev1 "k8s.io/api/core/v1"

// The labels that stood for system and architecture before they were stable. Old
// node selectors still name them.
// Source: k8s.io/kubelet/pkg/apis, well_known_labels.go.
const (
	labelOSBeta   = "beta.kubernetes.io/os"
	labelArchBeta = "beta.kubernetes.io/arch"
)

// followers pairs labels: the second has the value of the first wherever a node
// has the first. Source: k8s.io/kubernetes/pkg/controller/nodelifecycle,
// labelReconcileInfo.
var followers = [...][2]string{
	{corev1.LabelOSStable, labelOSBeta},
	{corev1.LabelArchStable, labelArchBeta},
}

// labelsToSet returns the labels whose values the node should have and does not.
// It is nil if there are none.
func labelsToSet(labels map[string]string) map[string]string {
	var set map[string]string
	for _, pair := range followers {
		value, leads := labels[pair[0]]
		if !leads {
			continue
		}
		if has, follows := labels[pair[1]]; follows && has == value {
			continue
		}
		if set == nil {
			set = map[string]string{}
		}
		set[pair[1]] = value
	}
	return set
}
