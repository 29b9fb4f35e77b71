// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package setpointtest

import (
	"context"
	"fmt"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/yaml"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/internal/pause"
	"github.com/setpoint-io/setpoint/object"
)

// Patience is how long the waits of this package take at most. It bounds a test that
// fails, and says nothing of how long anything takes.
const Patience = 2 * time.Minute

// again is how long a wait pauses between two looks that take no time.
const again = 20 * time.Millisecond

// Eventually waits until holds returns nil: its error is what is missing. what names the
// state that is waited for, as in "the page is served". The test fails if it does not come
// about within [Patience].
func Eventually(t testing.TB, what string, holds func() error) {
	t.Helper()
	if missing := wait(holds); missing != nil {
		t.Fatalf("%s: not so after %s: %v", what, Patience, missing)
	}
}

// wait returns nil once holds does, or what is missing after Patience.
func wait(holds func() error) error {
	deadline := time.NewTimer(Patience)
	defer deadline.Stop()
	for {
		began := time.Now()
		missing := holds()
		if missing == nil {
			return nil
		}
		select {
		case <-time.After(pause.Between(time.Since(began), again)):
		case <-deadline.C:
			return missing
		}
	}
}

// Await waits until an object is there and holds returns true for it, and returns it. If
// it does not come about within [Patience], the test fails, and the message shows the object
// as it was last seen.
func Await[T object.Object](t testing.TB, c *client.Client, key object.Key, what string, holds func(T) bool) T {
	t.Helper()
	var last T
	Eventually(t, what, func() error {
		o, err := client.For[T](c).Get(context.WithoutCancel(t.Context()), key)
		if err != nil {
			return err
		}
		if last = o; !holds(o) {
			return unfitError{o}
		}
		return nil
	})
	return last
}

// AwaitGone waits until there is no object of a key.
func AwaitGone[T object.Object](t testing.TB, c *client.Client, key object.Key) {
	t.Helper()
	Eventually(t, fmt.Sprintf("%T %s is gone", *new(T), key), func() error {
		o, err := client.For[T](c).Get(context.WithoutCancel(t.Context()), key)
		switch {
		case apierrors.IsNotFound(err):
			return nil
		case err != nil:
			return err
		}
		return unfitError{o}
	})
}

// unfitError is the error of a wait that sees an object which is not as it should be. A wait
// sees it again and again, and writes it out at most once.
type unfitError struct{ object object.Object }

// Error shows the object as YAML, without managedFields.
func (l unfitError) Error() string {
	o := l.object.DeepCopyObject().(object.Object)
	o.SetManagedFields(nil)
	text, err := yaml.Marshal(o)
	if err != nil {
		return fmt.Sprintf("last seen as %v", o)
	}
	return "last seen as\n" + string(text)
}
