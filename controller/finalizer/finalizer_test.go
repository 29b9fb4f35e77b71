// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package finalizer_test

import (
	"os"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controller/finalizer"
	"github.com/setpoint-io/setpoint/internal/controlplanetest"
	"github.com/setpoint-io/setpoint/object"
)

var shared controlplanetest.Shared

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

const (
	ours   = "example.com/ours"
	theirs = "example.com/theirs"
)

func TestFinalizersHoldUpADeletion(t *testing.T) {
	cluster := shared.Get(t)
	maps := client.For[*corev1.ConfigMap](cluster.Client)
	create := func(t *testing.T) *corev1.ConfigMap {
		t.Helper()
		o, err := maps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
			Namespace: cluster.Namespace(t), Name: "it", Finalizers: []string{theirs},
		}})
		if err != nil {
			t.Fatal(err)
		}
		return o
	}

	t.Run("added once and removed once", func(t *testing.T) {
		first := create(t)
		held, err := finalizer.Add(t.Context(), maps, first, ours)
		if err != nil {
			t.Fatal(err)
		}
		if want := []string{theirs, ours}; !slices.Equal(held.Finalizers, want) {
			t.Errorf("the finalizers are %v, want %v", held.Finalizers, want)
		}
		if want := []string{theirs}; !slices.Equal(first.Finalizers, want) {
			t.Errorf("those of the object that was given are %v now, want %v", first.Finalizers, want)
		}
		again, err := finalizer.Add(t.Context(), maps, held, ours)
		if err != nil || again != held {
			t.Errorf("adding it again: %v, %v; want the same object", again, err)
		}
		if err := finalizer.Remove(t.Context(), maps, held, ours); err != nil {
			t.Fatal(err)
		}
		left, err := maps.Get(t.Context(), object.KeyOf(held))
		if err != nil {
			t.Fatal(err)
		}
		if want := []string{theirs}; !slices.Equal(left.Finalizers, want) {
			t.Errorf("the finalizers are %v, want %v", left.Finalizers, want)
		}
		if err := finalizer.Remove(t.Context(), maps, left, ours); err != nil {
			t.Errorf("removing it again: %v", err)
		}
	})

	t.Run("an object that has changed is a conflict", func(t *testing.T) {
		old := create(t)
		if _, err := finalizer.Add(t.Context(), maps, old, "example.com/third"); err != nil {
			t.Fatal(err)
		}
		// Without the conflict this would take the third one away.
		if _, err := finalizer.Add(t.Context(), maps, old, ours); !apierrors.IsConflict(err) {
			t.Errorf("adding: %v, want a conflict", err)
		}
		if err := finalizer.Remove(t.Context(), maps, old, theirs); !apierrors.IsConflict(err) {
			t.Errorf("removing: %v, want a conflict", err)
		}
	})

	t.Run("the last one lets the object go", func(t *testing.T) {
		o := create(t)
		if err := maps.Delete(t.Context(), object.KeyOf(o)); err != nil {
			t.Fatal(err)
		}
		o, err := maps.Get(t.Context(), object.KeyOf(o))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := finalizer.Add(t.Context(), maps, o, ours); err == nil {
			t.Error("a finalizer was added while the object is being deleted")
		}
		if err := finalizer.Remove(t.Context(), maps, o, theirs); err != nil {
			t.Fatal(err)
		}
		if _, err := maps.Get(t.Context(), object.KeyOf(o)); !apierrors.IsNotFound(err) {
			t.Errorf("after it: %v, want that the object is gone", err)
		}
		if err := finalizer.Remove(t.Context(), maps, o, theirs); err != nil {
			t.Errorf("removing one of an object that is gone: %v", err)
		}
	})
}
