// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"testing"

	"k8s.io/klog/v2"
)

func TestAHookThatFailsWhileItsServerStopsDoesNotEndTheProcess(t *testing.T) {
	sharedControlPlane(t) // klog's destination is set
	ended := beginStop()
	defer ended()
	done, goesOn := make(chan struct{}), false
	go func() {
		defer close(done)
		klog.Fatalf("PostStartHook %q failed: %v", "rbac/bootstrap-roles", "context canceled")
		goesOn = true
	}()
	<-done
	if goesOn {
		t.Error("the hook goes on after klog.Fatal")
	}
}
