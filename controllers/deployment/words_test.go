// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// Users, kubectl and other tools compare with these words.
// Source: k8s.io/kubernetes/pkg/controller/deployment/util.
func TestReasonsAreThoseThatToolsKnow(t *testing.T) {
	for have, want := range map[string]string{
		reasonCreated:           "NewReplicaSetCreated",
		reasonNotCreated:        "ReplicaSetCreateError",
		reasonFound:             "FoundNewReplicaSet",
		reasonUpdated:           "ReplicaSetUpdated",
		reasonComplete:          "NewReplicaSetAvailable",
		reasonTimedOut:          "ProgressDeadlineExceeded",
		reasonPaused:            "DeploymentPaused",
		reasonResumed:           "DeploymentResumed",
		reasonAvailable:         "MinimumReplicasAvailable",
		reasonUnavailable:       "MinimumReplicasUnavailable",
		reasonRollback:          "DeploymentRollback",
		reasonRollbackUnknown:   "DeploymentRollbackRevisionNotFound",
		reasonRollbackUnchanged: "DeploymentRollbackTemplateUnchanged",
	} {
		if have != want {
			t.Errorf("%q should be %q", have, want)
		}
	}
}

func TestASetThatIsThereAlreadyIsFound(t *testing.T) {
	d := deployment(2)
	there := set(d, 1, 2, working(0))
	d.Status = decided(t, d, there).status // counted, and nothing said yet
	d.Status.Conditions = nil
	p := decided(t, d, there)
	wantCondition(t, p.status, appsv1.DeploymentProgressing, corev1.ConditionTrue, "FoundNewReplicaSet", `Found new replica set "`+there.Name+`"`)
}

func TestAPausedDeploymentThatGoesBackToASetSaysThatItIsPaused(t *testing.T) {
	d := rollingTo(deployment(2), 2)
	one, two := set(d, 1, 0), set(d, 2, 2)
	d = seen(d, decided(t, d, one, two))
	d.Spec.Paused = true
	d = seen(d, decided(t, d, one, two))
	d = rollingTo(d, 1)
	p := decided(t, d, one, two)
	if c := condition(&p.status, appsv1.DeploymentProgressing); c == nil || c.Reason != "DeploymentPaused" {
		t.Errorf("the condition is %+v, want that it is paused", c)
	}
}
