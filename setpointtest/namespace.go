// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package setpointtest

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/object"
)

var notInNames = regexp.MustCompile(`[^a-z0-9]+`)

// prefix is the begin of a name for what a test makes, from the name of the test.
func prefix(t testing.TB) string {
	return fmt.Sprintf("%.50s-", strings.Trim(notInNames.ReplaceAllString(strings.ToLower(t.Name()), "-"), "-"))
}

// Namespace makes a namespace for a test, named after it, in which Pods can be created. It
// is deleted when the test ends, with all that is in it, and the test waits until it is
// gone. By then the controller under test may have ended: objects that only its finalizers
// keep lose them.
func (e *Environment) Namespace(t testing.TB) string {
	t.Helper()
	namespaces := client.For[*corev1.Namespace](e.Client)
	made, err := namespaces.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: prefix(t)}})
	if err != nil {
		t.Fatalf("making a namespace for the test: %v", err)
	}
	t.Cleanup(func() {
		if err := e.remove(context.WithoutCancel(t.Context()), made); err != nil {
			t.Errorf("deleting the namespace of the test: %v", err)
		}
	})
	Await(t, e.Client, object.Key{Namespace: made.Name, Name: "default"}, "the namespace of the test has its ServiceAccount",
		func(*corev1.ServiceAccount) bool { return true })
	return made.Name
}

// remove deletes a namespace and waits until it is gone.
func (e *Environment) remove(ctx context.Context, namespace *corev1.Namespace) error {
	namespaces, key := client.For[*corev1.Namespace](e.Client), object.KeyOf(namespace)
	if err := namespaces.Delete(ctx, key, client.IfUID(namespace.UID)); err != nil {
		if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
			return nil // the test did, and may have made another
		}
		return err
	}
	return wait(func() error {
		now, err := namespaces.Get(ctx, key)
		if apierrors.IsNotFound(err) || err == nil && now.UID != namespace.UID {
			return nil
		}
		if err != nil {
			return err
		}
		if kept(now) {
			if err := e.release(ctx, now.Name); err != nil {
				return err
			}
		}
		return unfitError{now}
	})
}

// kept reports whether only finalizers of what is in it keep a namespace.
func kept(namespace *corev1.Namespace) bool {
	for _, c := range namespace.Status.Conditions {
		if c.Type == corev1.NamespaceFinalizersRemaining && c.Status == corev1.ConditionTrue {
			return true
		}
	}
	return false
}

// release takes the finalizers of what is being deleted in a namespace.
func (e *Environment) release(ctx context.Context, namespace string) error {
	kinds, err := e.Client.Discover(ctx)
	if err != nil {
		return err
	}
	none, err := client.MergePatch(map[string]any{"metadata": map[string]any{"finalizers": nil}})
	if err != nil {
		return err
	}
	for _, kind := range kinds {
		if !kind.Namespaced || !kind.Can("list") || !kind.Can("patch") {
			continue
		}
		of := client.ForResource[*metav1.PartialObjectMetadata](e.Client, kind.Resource)
		objects, _, err := of.List(ctx, client.Selection{Namespace: namespace})
		if err != nil {
			return err
		}
		for _, o := range objects {
			if o.DeletionTimestamp == nil || len(o.Finalizers) == 0 {
				continue
			}
			if _, err := of.Patch(ctx, object.KeyOf(o), none); err != nil && !apierrors.IsNotFound(err) {
				return err
			}
		}
	}
	return nil
}
