// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package nodefit_test

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/explain/nodefit"
)

func Example() {
	waiting := pod(amounts("cpu", "3"), nil)
	n := node(func(n *corev1.Node) {
		n.Spec.Taints = []corev1.Taint{{Key: "dedicated", Value: "db", Effect: corev1.TaintEffectNoSchedule}}
	})
	n.Pods = []*corev1.Pod{pod(amounts("cpu", "2500m"), nil)}
	for _, f := range nodefit.Check(waiting, n).Fails {
		fmt.Println(f.Text)
	}
	// Output:
	// the Pod does not tolerate its taint dedicated=db:NoSchedule
	// the Pod asks for 3 of cpu, and 1500m of 4 are left
}
