// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	genericserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/rest"
	"k8s.io/component-base/compatibility"
	"k8s.io/klog/v2"
)

// fatals replaces the end of the process by klog.Fatal for a test: each call sends whether the process would end.
func fatals(t *testing.T) <-chan bool {
	sharedControlPlane(t) // klog's destination is set
	before := klog.OsExit
	t.Cleanup(func() { klog.OsExit = before })
	results := make(chan bool, 1)
	exited := false
	klog.OsExit = func(int) { exited = true }
	surviveFatal()
	survive := klog.OsExit
	klog.OsExit = func(code int) {
		defer func() { results <- exited }() // it runs too when the goroutine ends
		survive(code)
	}
	return results
}

func TestAHookThatFailsDoesNotEndTheProcess(t *testing.T) {
	results := fatals(t)
	config := genericserver.NewConfig(serializer.NewCodecFactory(runtime.NewScheme()))
	config.EffectiveVersion = compatibility.NewEffectiveVersionFromString("1.37", "", "")
	config.ExternalAddress, config.LoopbackClientConfig = "127.0.0.1:1", &rest.Config{}
	s, err := config.Complete(nil).New("hooks", genericserver.NewEmptyDelegate())
	if err != nil {
		t.Fatal(err)
	}
	s.AddPostStartHookOrDie("fails", func(genericserver.PostStartHookContext) error {
		return errors.New("unable to initialize roles: timed out waiting for the condition")
	})
	s.RunPostStartHooks(t.Context())
	if <-results {
		t.Error("klog.Fatal of a hook ends the process")
	}
}

func TestAFatalErrorOutsideOfAHookEndsTheProcess(t *testing.T) {
	results := fatals(t)
	end := klog.Fatal // linters know that klog.Fatal does not return
	end("no way on")
	if !<-results {
		t.Error("klog.Fatal goes on")
	}
}
