// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package endtoend_test

import (
	"testing"

	"github.com/setpoint-io/setpoint/internal/controlplanetest"
)

// kubeControllerManager starts that of Kubernetes, with the controllers of the works.
func kubeControllerManager(t *testing.T, cluster *controlplanetest.Cluster) *managerProcess {
	t.Helper()
	return startManager(t, "kube-controller-manager", "--kubeconfig", cluster.Kubeconfig, "--controllers", workControllers,
		"--leader-elect=false", "--secure-port", "0", "--kube-api-qps", "1000", "--kube-api-burst", "1000", autoscaling)
}

// The two managers take turns on one cluster. Each takes over from the other at rest, which
// costs no Pod, and in the middle of all works, which it finishes.
func TestKubeControllerManagerAndSetpointTakeTurns(t *testing.T) {
	cluster := onShared(t)
	m := kubeControllerManager(t, cluster)
	s := newSite(t, cluster)
	s.theirs.Store(true)
	s.done()
	for _, turn := range []struct {
		name   string
		end    func(*managerProcess) // of the manager before
		start  func(*testing.T, *controlplanetest.Cluster) *managerProcess
		atRest bool
		theirs bool
	}{
		{"Setpoint, at rest", (*managerProcess).stop, manage, true, false},
		{"kube-controller-manager, after an orderly end", (*managerProcess).stop, kubeControllerManager, false, true},
		{"Setpoint, after a kill", (*managerProcess).kill, manage, false, false},
		{"kube-controller-manager, at rest", (*managerProcess).stop, kubeControllerManager, true, true},
	} {
		t.Logf("it is the turn of %s", turn.name)
		before := s.uids()
		if !turn.atRest {
			s.middle()
		}
		turn.end(m)
		if turn.theirs {
			s.theirs.Store(true)
		}
		m = turn.start(t, cluster)
		if turn.atRest {
			// The manager has seen to all that was there when it has done what came later.
			later := newSite(t, cluster)
			later.theirs.Store(turn.theirs)
			later.done()
			if lost := gone(before, s.uids()); len(lost) > 0 {
				t.Errorf("%s: these Pods are gone: %q", turn.name, lost)
			}
		}
		s.done()
		s.theirs.Store(turn.theirs)
	}
}

func TestAManagerThatStoodByFinishesAllWorks(t *testing.T) {
	cluster := onShared(t)
	lease := cluster.Namespace(t)
	candidate := func() *managerProcess {
		return startManager(t, "setpoint", "manager", "--kubeconfig", cluster.Kubeconfig, "--log-format", "text",
			"--secure-port", "0", "--leader-elect-resource-namespace", lease, autoscaling)
	}
	leader := candidate()
	s := newSite(t, cluster)
	s.done()
	standby := candidate()
	until(t, "the standby to stand by", func() bool { return standby.lines.say("standing by") })
	s.middle()
	leader.stop()
	if leader.err != nil {
		t.Errorf("the leader ended with %v", leader.err)
	}
	s.done()
}
