// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package fakeapi

import (
	"net/http"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Asked is what servers were asked for besides lists and watches, as "delete
// /api/v1/namespaces/ns/pods/web" says it. It is for tests of what is not even tried. The
// zero Asked is ready, and it is safe for concurrent use.
type Asked struct {
	mu  sync.Mutex
	all []string
}

// Note is for [Server.Before], of one server or several. It refuses nothing.
func (a *Asked) Note(verb string, r *http.Request) *metav1.Status {
	if verb != "list" && verb != "watch" {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.all = append(a.all, verb+" "+r.URL.Path)
	}
	return nil
}

// All returns what was asked for, in order.
func (a *Asked) All() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.all)
}

// Forget begins anew.
func (a *Asked) Forget() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.all = nil
}
