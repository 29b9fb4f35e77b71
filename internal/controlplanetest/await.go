// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplanetest

import (
	"context"
	"errors"
	"os"
	"testing"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest"
)

// Patience is how long Await waits.
const Patience = setpointtest.Patience

// Await waits until holds returns true for an object in an informer of p, and returns the
// object. The factory of p must be running.
func Await[T object.Object](t testing.TB, p cache.Provider, key object.Key, what string, holds func(T) bool) T {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), Patience)
	defer cancel()
	changed := make(chan struct{}, 1)
	informer := cache.Informer[T](p)
	handler, err := informer.AddHandler(func(cache.Event[T]) {
		select {
		case changed <- struct{}{}:
		default:
		}
	}, cache.HandlerOptions{Name: t.Name()})
	if err != nil {
		t.Fatal(err)
	}
	defer handler.Remove()
	for {
		o, err := informer.Get(key)
		if err == nil && holds(o) {
			return o
		}
		select {
		case <-changed:
		case <-ctx.Done():
			t.Fatalf("%s: not so after %s; now %v (%v)", what, Patience, o, err)
		}
	}
}

// Eventually waits until something holds that no informer shows.
func Eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	setpointtest.Eventually(t, what, func() error {
		if !holds() {
			return errors.New("it does not hold")
		}
		return nil
	})
}

// AwaitFile waits until a file exists, such as one that a process writes when it is ready.
func AwaitFile(t testing.TB, what, path string) {
	t.Helper()
	setpointtest.Eventually(t, what, func() error { _, err := os.Stat(path); return err })
}
