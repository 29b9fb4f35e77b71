// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package statefulset

import (
	"bytes"
	"maps"
	"os/exec"
	"slices"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/internal/controlplanetest"
	"github.com/setpoint-io/setpoint/internal/managertest"
)

// kubeControllerManager runs upstream's controller for StatefulSets until the returned function is
// called.
func kubeControllerManager(t *testing.T) (stop func()) {
	t.Helper()
	binary, err := controlplanetest.Binary("kube-controller-manager")
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	command := exec.CommandContext(t.Context(), binary, "--kubeconfig", shared.Get(t).Kubeconfig,
		"--controllers", Name, "--leader-elect=false", "--secure-port", "0")
	command.Stderr = &log
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	stop = sync.OnceFunc(func() {
		_ = command.Process.Kill()
		_ = command.Wait() // it says that the process was killed
		if t.Failed() {
			t.Logf("kube-controller-manager:\n%s", log.Bytes())
		}
	})
	t.Cleanup(stop)
	return stop
}

// TestAStatefulSetChangesHandsWithoutARestart has kube-controller-manager and Setpoint take turns.
// No Pod restarts, no revision is written again, and each finds the revisions of the other.
func TestAStatefulSetChangesHandsWithoutARestart(t *testing.T) {
	s := newScene(t, web(2))
	stop := kubeControllerManager(t)
	s.rest()
	s.change(withImage("web:3"))
	before := s.rest()
	history := s.history()
	stop()

	ours := managertest.Run(t, shared.Get(t).Config, managertest.Making(New, Defaults()))
	s.change(map[string]any{"replicas": 3})
	s.same("Setpoint", before, s.rest(), history)
	s.change(withImage("web:2")) // of which kube-controller-manager has written the revision
	s.rest()
	s.change(withImage("web:3"))
	before = s.rest()
	ours.Stop()

	stop = kubeControllerManager(t)
	s.change(map[string]any{"replicas": 4})
	s.same("kube-controller-manager", before, s.rest(), history)
	stop()
}

// same fails if a Pod was restarted, or a revision written.
func (s *scene) same(by string, before, after map[string]types.UID, history []string) {
	s.t.Helper()
	for name, uid := range before {
		if after[name] != uid {
			s.t.Errorf("%s has restarted %s", by, name)
		}
	}
	if len(after) != len(before)+1 {
		s.t.Errorf("the Pods were %v, and are %v", slices.Sorted(maps.Keys(before)), slices.Sorted(maps.Keys(after)))
	}
	if now := s.history(); !slices.Equal(now, history) {
		s.t.Errorf("the revisions were %v, and are %v", history, now)
	}
}
