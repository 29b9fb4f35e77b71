// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package endtoend_test

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/client"
)

// deployed is a Deployment that is rolled out.
type deployed struct {
	*rollout
	stage *stage
	from  int // changes of Pods before the last change
}

func newDeployed(s *stage) work {
	return &deployed{rollout: deploy(s.t, s.Cluster, s.namespace), stage: s}
}

func (d *deployed) change() {
	d.stage.t.Helper()
	d.from = d.stage.pods.count()
	d.next()
}

func (d *deployed) begun() bool { return d.stage.pods.count() > d.from+30 }

func (d *deployed) missing() string {
	current, err := client.For[*appsv1.Deployment](d.cluster.Client).Get(d.t.Context(), d.key)
	if err != nil {
		return err.Error()
	}
	if !complete(current) {
		return "the rollout is not over"
	}
	if wrong := d.wrong(d.stage.pods.now(), replicas); wrong != "" {
		return wrong
	}
	d.checkSets()
	return ""
}

// inBounds holds what Setpoint guarantees. kube-controller-manager counts what its ReplicaSets are to have, and not
// what they have: it creates the Pods of the new one while some of the old one are still there, as one too many.
func (d *deployed) inBounds(pods map[types.UID]*corev1.Pod) error {
	if d.stage.theirs.Load() {
		return nil
	}
	return inBounds(pods)
}
