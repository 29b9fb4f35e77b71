// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"runtime"
	"sync/atomic"
	"time"

	"k8s.io/klog/v2"
)

// A hook of kube-apiserver that fails ends the process, by klog.Fatal. The hook that writes the RBAC
// roles fails when its server is stopped while it still waits for its first try: a start that is
// cancelled would end the process, and leave etcd and the data directory as they are.
// Sources: k8s.io/apiserver/pkg/server, runPostStartHook; k8s.io/kubernetes/pkg/registry/rbac/rest,
// PostStartHook.

// stopping is how many API servers of the process are being stopped, or were a moment ago.
var stopping atomic.Int32

// hooksEnd is how long the hooks of a stopped server may take to notice it.
const hooksEnd = 10 * time.Second

// beginStop says that a server is about to be stopped. The returned function says that it has ended.
func beginStop() (ended func()) {
	stopping.Add(1)
	return func() { time.AfterFunc(hooksEnd, func() { stopping.Add(-1) }) }
}

// surviveFatal makes klog.Fatal end its goroutine alone while a server stops. At any other time it
// ends the process, as before.
func surviveFatal() {
	exit := klog.OsExit
	klog.OsExit = func(code int) {
		if stopping.Load() > 0 {
			runtime.Goexit()
		}
		exit(code)
	}
}
