// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build conformance

package clientgo

import "k8s.io/client-go/tools/cache"

// These functions are for the tests of client-go, which read the same from private fields.

// HandlersOf returns how many handlers an informer has.
func HandlersOf(i *Informer) int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return len(i.registrations)
}

// HasStarted reports whether an informer has been started.
func HasStarted(i *Informer) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.started
}

// HasHandler reports whether a handler is an informer's.
func HasHandler(i *Informer, handle cache.ResourceEventHandlerRegistration) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	r, ok := handle.(*registration)
	_, known := i.registrations[r]
	return ok && known
}
