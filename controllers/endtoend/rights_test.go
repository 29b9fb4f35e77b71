// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package endtoend_test

import (
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/setpoint-io/setpoint/controllers/deployment"
	"github.com/setpoint-io/setpoint/controllers/replicaset"
)

func TestRolloutsAndRollbacksNeedNoOtherRightsThanThoseDeclared(t *testing.T) {
	c := &cluster{Cluster: shared.Get(t), t: t}
	c.namespace = c.Namespace(t)
	c.run(c.Restricted(t, deployment.Rights()), deployments)
	c.run(c.Restricted(t, replicaset.Rights()), replicaSets)
	c.create("web", 3, "0s", func(d *appsv1.Deployment) {
		one := int32(1)
		d.Spec.RevisionHistoryLimit = &one
	})
	c.rolledOut("web")
	for version := 2; version <= 3; version++ {
		c.kubectl("set", "image", "deployment/web", fmt.Sprintf("main=web:%d", version))
		c.rolledOut("web")
	}
	c.eventually(func() string { // the oldest of three sets is removed
		if n := len(c.sets()); n != 2 {
			return fmt.Sprintf("%d ReplicaSets, want 2", n)
		}
		return ""
	})
	// The controller itself changes the template back.
	c.kubectl("annotate", "deployment/web", appsv1.DeprecatedRollbackTo+"=0")
	c.eventually(func() string {
		if image := c.deployment("web").Spec.Template.Spec.Containers[0].Image; image != "web:2" {
			return "the image is " + image
		}
		return ""
	})
	c.rolledOut("web")
	c.kubectl("scale", "deployment/web", "--replicas=1")
	c.rolledOut("web")
	c.eventually(c.hasEvent("ScalingReplicaSet", "Scaled down replica set"))
}
