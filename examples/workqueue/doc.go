// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Workqueue is the example that controllers have been taught with: an informer puts the
// keys of Pods that change into a work queue, several workers take them out, and a key
// that fails is tried five times more, later each time, and then dropped with a line in
// the log.
//
//	export KUBECONFIG=...
//	go run ./examples/workqueue
//
// It shows the parts that the controller package puts together. A real controller is
// shorter with that, and reads its own writes; see examples/website.
//
// It has 94 lines of code, where the same program has 114 on client-go and 89 on
// controller-runtime.
package main
