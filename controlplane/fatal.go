// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"runtime"

	"k8s.io/klog/v2"
)

// A hook of kube-apiserver that fails ends the process, by klog.Fatal. The hook that writes the RBAC roles fails
// if its server is stopped while the hook waits for its first try, and if the server needs more than 30 s for
// that: a start that is cancelled or slow would end the process, and leave etcd and the data directory as they are.
// Sources: k8s.io/apiserver/pkg/server, runPostStartHook; k8s.io/kubernetes/pkg/registry/rbac/rest, PostStartHook.
const hookRunner = "k8s.io/apiserver/pkg/server.runPostStartHook"

// surviveFatal makes klog.Fatal end its goroutine alone if a hook of a server called it. That server never gets
// ready, since its check of the hook fails, so that its start ends with an error that names the hook. Every other
// klog.Fatal ends the process, as before.
func surviveFatal() {
	exit := klog.OsExit
	klog.OsExit = func(code int) {
		if calledBy(hookRunner) {
			runtime.Goexit()
		}
		exit(code)
	}
}

// mostCallers is how many of its callers a klog.Fatal looks at: some ten functions of klog are between.
const mostCallers = 64

// calledBy reports whether a function is among the callers.
func calledBy(function string) bool {
	callers := make([]uintptr, mostCallers)
	frames := runtime.CallersFrames(callers[:runtime.Callers(2, callers)])
	for {
		frame, more := frames.Next()
		if frame.Function == function {
			return true
		}
		if !more {
			return false
		}
	}
}
