// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package endtoend_test

import (
	"fmt"
	"testing"

	"github.com/setpoint-io/setpoint/controllers/garbagecollector"
	"github.com/setpoint-io/setpoint/manager"
)

func garbage(mgr *manager.Manager) (manager.Runnable, error) {
	return garbagecollector.New(mgr, garbagecollector.Defaults())
}

// count says what is missing for there to be so many objects of a kind.
func (c *cluster) count(resource string, want int) func() string {
	return func() string {
		list := read[struct{ Items []struct{} }](c, resource)
		if len(list.Items) != want {
			return fmt.Sprintf("%d %s, want %d", len(list.Items), resource, want)
		}
		return ""
	}
}

// What kubectl delete says of a Deployment holds for all below it, whichever way it
// is told to go about it.
func TestADeletedDeploymentLeavesNothingBehindOrItsOrphans(t *testing.T) {
	for _, test := range []struct {
		cascade    string
		sets, pods int
	}{
		{"background", 0, 0},
		{"foreground", 0, 0},
		{"orphan", 2, 5},
	} {
		t.Run(test.cascade, func(t *testing.T) {
			c := &cluster{Cluster: shared.Get(t), t: t}
			c.namespace = c.Namespace(t)
			c.run(c.Config, replicaSets, deployments, garbage)
			c.create("web", 5, "0s")
			c.rolledOut("web")
			c.kubectl("set", "image", "deployment/web", "main=web:2")
			c.rolledOut("web")
			c.eventually(c.count("pods", 5))

			c.kubectl("delete", "deployment", "web", "--cascade="+test.cascade, "--timeout", patience.String())
			if test.cascade == "foreground" {
				// kubectl waits for the Deployment, and the Deployment for all below.
				if missing := c.count("pods", 0)(); missing != "" {
					t.Error(missing)
				}
			}
			c.eventually(c.count("replicasets", test.sets))
			c.eventually(c.count("pods", test.pods))

			if test.cascade != "orphan" {
				return
			}
			for _, set := range c.sets() {
				if len(set.OwnerReferences) > 0 {
					t.Errorf("the orphan %s has the owners %v", set.Name, set.OwnerReferences)
				}
			}
			// Orphans are adopted by the next one, and go with it.
			c.create("web", 5, "0s")
			c.kubectl("set", "image", "deployment/web", "main=web:2")
			c.rolledOut("web")
			c.kubectl("delete", "deployment", "web", "--timeout", patience.String())
			c.eventually(c.count("replicasets", 0))
			c.eventually(c.count("pods", 0))
		})
	}
}
